package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// countEvents raises the counts of the drawers of p, or creates the drawers, in one batch for each
// cabinet. For each part, empty reports whether the part adds to an existing drawer without
// unacknowledged events. countEvents fails with client.ErrStale if a drawer is sealed.
func (w *recipientWriter) countEvents(ctx context.Context, c *call, p *savePlan) (empty []bool, err error) {
	empty = make([]bool, len(p.intent.Parts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for name, at := range partsBy(p.intent, func(part *drawerPart) string { return part.Cabinet }) {
		for some := range slices.Chunk(at, batchPages) { // a single chunk, unless drawers are very small
			g.Go(func() error {
				drawers, err := w.countCabinet(ctx, c, p, name, some)
				for i, d := range drawers {
					part := &p.intent.Parts[some[i]]
					empty[some[i]] = !part.New && d.Position >= part.Slot
				}
				return err
			})
		}
	}
	return empty, g.Wait()
}

// partsBy groups the indexes of the parts of an intent by key. Within each group, they are in order.
func partsBy(it *intent, key func(*drawerPart) string) map[string][]int {
	by := make(map[string][]int)
	for i := range it.Parts {
		k := key(&it.Parts[i])
		by[k] = append(by[k], i)
	}
	return by
}

func (w *recipientWriter) countCabinet(ctx context.Context, c *call, p *savePlan, name cabinetName, at []int) ([]drawer, error) {
	key := w.recipient.String() + "|" + name
	var drawers []drawer
	// If the node crashes after this write, the counts exceed the fill in the head. Readers trust only
	// the fill in the head, and a rollback resets the counts.
	results, err := c.Batch(ctx, w.r.db.cabinets, key, true, func(b *azcosmos.TransactionalBatch) {
		for _, i := range at {
			part, weight := &p.intent.Parts[i], sumWeights(p.events[i])
			if part.New {
				b.CreateItem(client.Encode(&drawer{
					ID: part.Drawer, PartitionKey: key, Ordinal: part.Ordinal, FirstSequence: part.First,
					Count: part.Count, Weight: weight, WriteID: p.intent.ID,
				}), nil)
			} else {
				b.PatchItem(part.Drawer, countUp(part, weight, p.intent.ID), nil)
			}
		}
	})
	if err == nil {
		for _, result := range results {
			var d drawer
			if err := c.Decode(result.ResourceBody, key, &d); err != nil {
				return nil, err
			}
			drawers = append(drawers, d)
		}
		return drawers, nil
	}
	if client.StatusOf(err) == http.StatusBadRequest { // Cosmos DB cannot increment a member that is not a number
		return nil, domain.Errorf(domain.Damaged, "count in drawers of %s: %w", key, err)
	}
	if !client.IsRefused(err) {
		return nil, err
	}
	// The batch was refused: either an earlier attempt was applied, or a drawer is sealed. In addition,
	// the code checks that the count was written by this intent.
	for _, i := range at {
		part := &p.intent.Parts[i]
		var d drawer
		_, err := c.Read(ctx, w.r.db.cabinets, key, part.Drawer, &d)
		switch {
		case client.IsNotFound(err):
			return nil, client.ErrStale
		case err != nil:
			return nil, err
		case d.WriteID != p.intent.ID || d.Count != part.endSlot() || d.Sealed:
			return nil, client.ErrStale
		}
		drawers = append(drawers, d)
	}
	return drawers, nil
}

// countUp returns a patch that adds a part to the count of a drawer. Its condition is that the drawer is
// not sealed and has the count that the plan assumes. The etag is not a condition, because a Dequeue may
// update the number of acknowledged slots at any time, which does not affect the count.
func countUp(part *drawerPart, weight domain.Weight, intent string) azcosmos.PatchOperations {
	ops := client.NewPatch(drawerDocument, "c.sealed = false", fmt.Sprintf("c.count = %d", part.Slot))
	ops.AppendSet("/count", part.endSlot())
	ops.AppendIncrement("/weight", int64(weight))
	ops.AppendSet("/operation", intent)
	return ops
}

// sumWeights returns the sum of the weights of events, up to maxWeighed. Numbers in Cosmos DB are
// floating point and exact up to 2^53, and the sum is only an estimate for reading ahead.
func sumWeights(events []numberedEvent) domain.Weight {
	var sum domain.Weight
	for _, e := range events {
		sum = min(sum.Add(e.Weight), maxWeighed)
	}
	return sum
}

// maxWeighed is the limit for the sum of the weights of a part. Ten thousand sums of this size can be
// added without rounding.
const maxWeighed = 1 << 38

// writeEntries writes the catalog entries of the parts with the first unacknowledged events of their
// drawers: the parts for which empty is true. It sends one batch for each origin.
func (w *recipientWriter) writeEntries(ctx context.Context, c *call, p *savePlan, empty []bool) error {
	if !w.r.usesEntries() {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	entries := make(map[string][]catalogEntry)
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		if !empty[i] {
			continue
		}
		cabinet, err := cabinetOf(w.recipient, part.Cabinet)
		if err != nil {
			return err
		}
		key := catalogKey(w.recipient, cabinet.Origin)
		entries[key] = append(entries[key], catalogEntry{
			ID: part.Drawer, PartitionKey: key, ContentType: cabinet.ContentType.String(),
			Ordinal: part.Ordinal, NextSequence: part.First, exists: !part.New,
		})
	}
	for key, some := range entries {
		g.Go(func() error {
			for chunk := range slices.Chunk(some, batchPages) { // a single chunk, unless drawers are very small
				if err := c.writeEntries(ctx, key, chunk); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// writeEntries writes the catalog entries of one partition. It creates the entries of new drawers.
// Existing entries are patched, which preserves the members of newer versions.
func (c *call) writeEntries(ctx context.Context, key string, entries []catalogEntry) error {
	// If the node crashes after this write, there are entries for events that are not visible. A Peek
	// selects cabinets by the head, and repairs an entry with a number that is too low.
	_, err := c.Batch(ctx, c.r.db.catalog, key, false, func(b *azcosmos.TransactionalBatch) {
		for i := range entries {
			if e := &entries[i]; e.exists {
				b.PatchItem(e.ID, e.statePatch(), nil)
			} else {
				b.CreateItem(client.Encode(e), nil)
			}
		}
	})
	if !client.IsRefused(err) && !client.IsNotFound(err) {
		return err
	}
	for i := range entries {
		if err := c.writeEntry(ctx, key, &entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry changes an existing catalog entry or creates a new one.
func (c *call) writeEntry(ctx context.Context, key string, e *catalogEntry) error {
	err := c.Patch(ctx, c.r.db.catalog, key, e.ID, e.statePatch(), &catalogEntry{})
	switch {
	case client.IsNotFound(err):
		_, err = c.Put(ctx, c.r.db.catalog, key, e.ID, "", e)
	case client.IsRefused(err): // the entry has a newer format
		if _, err = c.Read(ctx, c.r.db.catalog, key, e.ID, &catalogEntry{}); err == nil {
			err = client.ErrStale
		}
	}
	if client.IsRefused(err) {
		return client.ErrStale
	}
	return err
}

// sealDrawer seals a drawer and returns its final state. Because the write is a patch, it changes the
// current document even if the caller has read a stale one. Sealing a sealed drawer changes nothing.
func (c *call) sealDrawer(ctx context.Context, cabinet, id string) (*drawer, error) {
	ops := client.NewPatch(drawerDocument)
	ops.AppendSet("/sealed", true)
	var d drawer
	if err := c.Patch(ctx, c.r.db.cabinets, cabinet, id, ops, &d); err != nil {
		return nil, err
	}
	return &d, nil
}

// sealAt seals a drawer of an intent at the slot at which the intent begins. If the intent has not
// created its new drawer yet, sealAt creates a sealed drawer. This drawer is empty, unless a raise has
// found pages of the drawer; see save_raise.go.
func (c *call) sealAt(ctx context.Context, cabinet string, p *drawerPart, intent string) error {
	if p.New {
		empty := &drawer{
			ID: p.Drawer, PartitionKey: cabinet, Ordinal: p.Ordinal, FirstSequence: p.First,
			Count: p.Slot, Sealed: true, WriteID: intent,
		}
		// A crash after this write or the next one leaves a sealed drawer under a claimed intent. The
		// next writer seals it again, which changes nothing.
		if _, err := c.Put(ctx, c.r.db.cabinets, cabinet, p.Drawer, "", empty); client.StatusOf(err) != http.StatusConflict {
			return err
		}
	}
	ops := client.NewPatch(drawerDocument, "c.sealed = false")
	ops.AppendSet("/count", p.Slot)
	ops.AppendSet("/sealed", true)
	err := c.Patch(ctx, c.r.db.cabinets, cabinet, p.Drawer, ops, &drawer{})
	if !client.IsRefused(err) {
		return err
	}
	// Another rollback of the same intent has probably sealed the drawer already.
	var d drawer
	_, err = c.Read(ctx, c.r.db.cabinets, cabinet, p.Drawer, &d)
	switch {
	case client.IsNotFound(err), err == nil && !d.Sealed:
		return client.ErrStale // the read was stale
	}
	return err
}
