package cosmos

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An operator's order is one batch in the partition of the recipient's gates and bundles. The batch writes
// the changes, if any, and the record of the order. The id of the record contains the write id of the
// order: if the retry of a batch is refused, an existing record means that the batch was applied. An order
// with more documents than a batch can hold needs several batches; the first batch creates the record.

// The orders.
const (
	lookOrder    = "look"
	releaseOrder = "release"
	skipOrder    = "skip"
	replayOrder  = "replay"
	freezeOrder  = "freeze"
	thawOrder    = "thaw"
	abandonOrder = "abandon"
)

var _ repository.Admin = (*Repository)(nil)

// A decision holds the writes of an order, and the details for its record.
type decision struct {
	writes []batchWrite
	group  string
	bundle *bundleDoc
	lost   *lossDoc
}

// A batchWrite adds one operation to a batch.
type batchWrite func(*azcosmos.TransactionalBatch)

// replaceInBatch replaces the document that has etag, or creates it if etag is empty.
func replaceInBatch(id string, etag azcore.ETag, doc any) batchWrite {
	return func(b *azcosmos.TransactionalBatch) { putInBatch(b, id, etag, client.Encode(doc)) }
}

// patchInBatch patches a document, without a condition on its etag.
func patchInBatch(id string, ops azcosmos.PatchOperations) batchWrite {
	return func(b *azcosmos.TransactionalBatch) { b.PatchItem(id, ops, nil) }
}

// executeOrder calls decide, which reads the stored state. Then it writes the decision together with a
// record of the order.
func (r *Repository) executeOrder(ctx context.Context, recipient domain.ActorID, what string, by repository.AdminAction,
	decide func(c *call, id string) (*decision, error),
) error {
	if err := by.Check(); err != nil {
		return err
	}
	c := r.beginCall(what)
	id := r.client.NewID()
	recorded := false
	err := c.Retry(ctx, func() error {
		d, err := decide(c, id)
		if err != nil {
			return err
		}
		record := &recordDoc{
			ID: recordKind + "." + id, Recipient: recipient.String(), Kind: recordKind, What: what,
			Who: by.Who, Why: by.Why, When: r.opts.Clock().UTC(), Group: d.group, Lost: d.lost,
			TTL: int(recordsKept / time.Second),
		}
		if d.bundle != nil {
			record.Bundle, record.Events = d.bundle.ID, d.bundle.Count
		}
		for left := d.writes; !recorded || len(left) > 0; {
			writes := left[:min(len(left), maxBatch-1)]
			left = left[len(writes):]
			// A crash before this write changes nothing. After it, the order is applied and recorded. A
			// crash between two batches of an order leaves only the first ones applied. The operator finds
			// the record, or repeats the order.
			_, err := c.Batch(ctx, r.db.bundles, recipient.String(), false, func(b *azcosmos.TransactionalBatch) {
				for _, add := range writes {
					add(b)
				}
				if !recorded {
					b.CreateItem(client.Encode(record), nil)
				}
			})
			if client.IsRefused(err) {
				if err = client.ErrStale; !recorded { // an earlier attempt may have created the record
					err = c.mustExist(ctx, r.db.bundles, recipient.String(), record.ID)
				}
			}
			if err != nil {
				return err
			}
			recorded = true
		}
		return nil
	})
	return c.Outcome(what+" for "+recipient.String(), err)
}

// Release implements repository.Admin.
func (r *Repository) Release(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by repository.AdminAction) error {
	return r.executeOrder(ctx, recipient, releaseOrder, by, func(c *call, writeID string) (*decision, error) {
		doc, g, err := c.readOpenAndGate(ctx, recipient, id)
		if err != nil {
			return nil, err
		}
		return &decision{group: doc.Group, bundle: doc, writes: []batchWrite{
			patchInBatch(doc.ID, doc.closePatch(stateReleased, writeID, r.opts.Retention, r.opts.Clock())),
			replaceInBatch(g.ID, g.ETag, g.release(writeID).recordRetention(r.opts.Retention)),
		}}, nil
	})
}

// Skip implements repository.Admin.
func (r *Repository) Skip(ctx context.Context, recipient domain.ActorID, id domain.BundleID, by repository.AdminAction) error {
	return r.executeOrder(ctx, recipient, skipOrder, by, func(c *call, writeID string) (*decision, error) {
		doc, g, err := c.readOpenAndGate(ctx, recipient, id)
		if err != nil {
			return nil, err
		}
		return &decision{group: doc.Group, bundle: doc, writes: []batchWrite{
			patchInBatch(doc.ID, doc.closePatch(stateSkipped, writeID, r.opts.Retention, r.opts.Clock())),
			replaceInBatch(g.ID, g.ETag, g.advancePast(doc, writeID).recordRetention(r.opts.Retention)),
		}}, nil
	})
}

// readOpenAndGate returns an open bundle and the gate that names it as open.
func (c *call) readOpenAndGate(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (*bundleDoc, *gate, error) {
	doc, gates, err := c.bundleAndGates(ctx, recipient, id)
	if err != nil {
		return nil, nil, err
	}
	if doc == nil || doc.State != stateOpen {
		return nil, nil, c.whyNotOpen(ctx, recipient, id, gates)
	}
	for _, g := range gates {
		if g.Open == doc.ID {
			return doc, g, nil
		}
	}
	return nil, nil, client.ErrStale // bundle and gate were read at different times
}

// Replay implements repository.Admin.
//
// A sweep must not remove the events that Replay makes unacknowledged again. So Replay reads the gate, and
// then moves the fence in the head. A sweep that read the head earlier can no longer raise the floor. If a
// sweep has proved the gate since Replay read it, Replay's write of the gate fails.
//
// Replay lowers the entries before it moves the gate, because a Peek corrects an entry that is too low. A
// Save that has read the old gate may raise an entry again; so may the hints of a Dequeue on another node.
// So the gate stores the number up to which entries must not be used.
func (r *Repository) Replay(ctx context.Context, recipient domain.ActorID, group domain.Group, by repository.AdminAction) (domain.Bundle, error) {
	r.hints.awaitHints(ctx, recipient)
	var bundle domain.Bundle
	err := r.executeOrder(ctx, recipient, replayOrder, by, func(c *call, writeID string) (*decision, error) {
		doc, g, err := c.readLastClosed(ctx, recipient, group)
		if err != nil {
			return nil, err
		}
		if bundle, err = doc.toBundle(); err != nil {
			return nil, err
		}
		// A crash after this write leaves the head without the milestones of the bundle's drawers, so
		// these drawers are retained longer.
		if err := c.fenceRemoval(ctx, recipient, doc); err != nil {
			return nil, err
		}
		// A crash after this write leaves entries that are too low. The next Peek repairs them.
		if err := c.lowerEntries(ctx, &bundle, doc); err != nil {
			return nil, err
		}
		rewound := g.rewindTo(doc, writeID)
		return &decision{group: doc.Group, bundle: doc, writes: []batchWrite{
			replaceInBatch(doc.ID, doc.etag, doc.reopen(rewound, writeID)),
			replaceInBatch(g.ID, g.ETag, rewound),
		}}, nil
	})
	return bundle, err
}

// readLastClosed returns the bundle of a group that was closed most recently, and the gate of the group.
func (c *call) readLastClosed(ctx context.Context, recipient domain.ActorID, group domain.Group) (*bundleDoc, *gate, error) {
	gates := make(map[domain.Group]*gate)
	if err := c.readGates(ctx, recipient, []domain.Group{group}, gates); err != nil {
		return nil, nil, err
	}
	g := gates[group]
	if (g.Open != "" || g.Last == "") && c.r.db.ReadsMayBeStale() {
		var err error
		if g, err = c.gateNow(ctx, recipient, group); err != nil {
			return nil, nil, err
		}
	}
	if g.Open != "" || g.Last == "" {
		if g.Open != "" {
			return nil, nil, domain.Errorf(domain.Conflict, "bundle %s is open in group %s; dequeue, release or skip it first", g.Open, group)
		}
		return nil, nil, domain.Errorf(domain.NotFound, "no bundle was closed in group %s that could be replayed", group)
	}
	doc := &bundleDoc{}
	etag, err := c.Read(ctx, c.r.db.bundles, recipient.String(), g.Last, doc)
	if client.IsNotFound(err) {
		there, err := c.documentExists(ctx, c.r.db.bundles, recipient.String(), g.Last)
		if err != nil {
			return nil, nil, err
		}
		if there {
			return nil, nil, client.ErrStale
		}
		return nil, nil, domain.Errorf(domain.NotFound, "bundle %s, the last bundle of group %s, is no longer retained", g.Last, group)
	}
	if err != nil {
		return nil, nil, err
	}
	at, ok := g.At[doc.Cabinet]
	if !ok { // the cabinet was removed after the bundle was closed
		return nil, nil, errNotRetained(doc)
	}
	if doc.State == stateOpen || at.Total != doc.Start.Total+int64(doc.Count) {
		return nil, nil, client.ErrStale // bundle and gate were read at different times
	}
	doc.etag = etag
	return doc, g, nil
}

func errNotRetained(doc *bundleDoc) error {
	return domain.Errorf(domain.NotFound, "the events of bundle %s are no longer retained", doc.ID)
}

// fenceRemoval removes the milestones of the drawers of a bundle from the head. It fails with NotFound
// if a sweep may have removed these drawers.
func (c *call) fenceRemoval(ctx context.Context, recipient domain.ActorID, doc *bundleDoc) error {
	h, err := c.readHead(ctx, recipient)
	if err != nil {
		return err
	}
	first := doc.Ranges[0].Ordinal
	kept := maps.Clone(h.Retention)
	if kept == nil {
		kept = make(map[cabinetName]retained)
	}
	t := kept[doc.Cabinet]
	if h.cabinetFloor(doc.Cabinet) > first {
		return errNotRetained(doc)
	}
	t.Milestones = slices.DeleteFunc(slices.Clone(t.Milestones), func(m milestone) bool { return m.Below > first })
	kept[doc.Cabinet] = t
	_, err = c.writeRetention(ctx, h, &retentionPlan{of: kept})
	return err
}

// lowerEntries lowers or creates the entries of a bundle's drawers, so that the entries point at the
// bundle's events again.
func (c *call) lowerEntries(ctx context.Context, b *domain.Bundle, doc *bundleDoc) error {
	key := catalogKey(b.Cabinet.Recipient, b.Cabinet.Origin)
	var entries []catalogEntry
	for i, s := range doc.Ranges {
		var d drawer
		_, err := c.Read(ctx, c.r.db.cabinets, cabinetKey(b.Cabinet), s.Drawer, &d)
		if client.IsNotFound(err) {
			continue // the drawer has no document: all its events were in the tail, and need no entry
		}
		if err != nil {
			return err
		}
		first := d.FirstSequence
		if i == 0 {
			first = doc.First
		}
		entries = append(entries, catalogEntry{
			ID: s.Drawer, PartitionKey: key, ContentType: b.Cabinet.ContentType.String(), Ordinal: s.Ordinal, NextSequence: first,
		})
	}
	if len(entries) == 0 {
		return nil
	}
	return c.writeEntries(ctx, key, entries)
}

// Freeze implements repository.Admin.
func (r *Repository) Freeze(ctx context.Context, recipient domain.ActorID, by repository.AdminAction) error {
	return r.setFrozen(ctx, recipient, freezeOrder, true, by)
}

// Thaw implements repository.Admin.
func (r *Repository) Thaw(ctx context.Context, recipient domain.ActorID, by repository.AdminAction) error {
	return r.setFrozen(ctx, recipient, thawOrder, false, by)
}

// setFrozen writes every gate of a recipient, and creates missing gates. So a concurrent Peek or Dequeue
// cannot write a gate that it read earlier. If the actor has no mailbox, setFrozen returns NotFound: an
// order with a wrong id writes no documents.
func (r *Repository) setFrozen(ctx context.Context, recipient domain.ActorID, what string, frozen bool, by repository.AdminAction) error {
	return r.executeOrder(ctx, recipient, what, by, func(c *call, writeID string) (*decision, error) {
		gates, h, err := c.readGatesAndHead(ctx, recipient, r.opts.Groups.All())
		if err != nil {
			return nil, err
		}
		d := &decision{}
		known := h.etag != ""
		for _, group := range r.opts.Groups.All() {
			g := gates[group]
			known = known || g.ETag != ""
			if g.WriteID != writeID { // if they are equal, an earlier batch of this order wrote the gate
				d.writes = append(d.writes, replaceInBatch(g.ID, g.ETag, g.setFrozen(frozen, writeID)))
			}
		}
		if !known {
			return nil, c.whyNoMailbox(ctx, recipient)
		}
		return d, nil
	})
}

// FreezeAll freezes every recipient that has a mailbox, and returns the number of recipients. Repeating a
// FreezeAll is safe.
func (r *Repository) FreezeAll(ctx context.Context, by repository.AdminAction) (n int, err error) {
	const atOnce = 16
	var freezing errgroup.Group
	freezing.SetLimit(atOnce)
	err = r.beginCall(freezeOrder).eachRecipient(ctx, func(recipient domain.ActorID) error {
		n++
		freezing.Go(func() error { return r.Freeze(ctx, recipient, by) })
		return ctx.Err()
	})
	return n, errors.Join(err, freezing.Wait())
}

// whyNoMailbox returns the error for a read that found neither a head nor a gate of a recipient: NotFound
// if the recipient has none, client.ErrStale if the read was stale.
func (c *call) whyNoMailbox(ctx context.Context, recipient domain.ActorID) error {
	if c.r.db.ReadsMayBeStale() {
		switch there, err := c.documentExists(ctx, c.r.db.catalog, headKey(recipient), headID); {
		case err != nil:
			return err
		case there:
			return client.ErrStale
		}
	}
	return domain.Errorf(domain.NotFound, "actor %s has no mailbox: nothing was ever saved for it", recipient)
}

// Records implements repository.Admin.
func (r *Repository) Records(ctx context.Context, recipient domain.ActorID, limit int) ([]repository.Record, error) {
	docs, err := client.All[recordDoc](ctx, r.beginCall("records").Query(r.db.bundles, recipient.String(), "SELECT * FROM c WHERE c.kind = @kind",
		azcosmos.QueryParameter{Name: "@kind", Value: recordKind}))
	if err != nil {
		return nil, client.Classify("records of "+recipient.String(), err)
	}
	slices.SortStableFunc(docs, func(a, b *recordDoc) int { return b.When.Compare(a.When) })
	var records []repository.Record
	for _, d := range docs[:min(len(docs), limit)] {
		record := repository.Record{
			AdminAction: repository.AdminAction{Who: d.Who, Why: d.Why}, What: d.What, When: d.When, Events: d.Events,
		}
		if d.Group != "" {
			if record.Group, err = domain.ParseGroup(d.Group); err == nil {
				record.Bundle, err = domain.ParseBundleID(d.Bundle)
			}
			if err != nil {
				return nil, domain.Errorf(domain.Damaged, "record %s: %w", d.ID, err)
			}
		}
		if d.Lost != nil {
			if record.Lost, err = d.Lost.toLoss(recipient); err != nil {
				return nil, domain.Errorf(domain.Damaged, "record %s: %w", d.ID, err)
			}
		}
		records = append(records, record)
	}
	return records, nil
}
