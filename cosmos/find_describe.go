package cosmos

import (
	"cmp"
	"context"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	bundleSearchUnits  = 300 // limit in request units for finding the bundles of one event; the ranges of bundles are not indexed
	countedDrawers     = 100 // if more drawers are between the gate and an event, the events in them are not counted
	comparedCandidates = 20  // most candidates whose first event is read to find the first waiting event of a group
)

// describeLocated describes an event that was found with head h. If it fails, it returns an incomplete
// description with the error.
func (c *call) describeLocated(ctx context.Context, e *locatedEvent, h *head) (repository.FoundEvent, error) {
	slot := e.EventSlot
	found := repository.FoundEvent{StoredEvent: e.StoredEvent, Slot: &slot, Save: e.save, IsReserved: e.isReserved, Before: -1}
	var err error
	if found.Group, err = c.r.opts.Groups.GroupOf(e.Origin); err != nil {
		return found, domain.Errorf(domain.Damaged, "the configuration does not name its origin: %w", err)
	}
	err = c.Retry(ctx, func() error {
		described, err := c.describeEvent(ctx, found, h)
		found = described
		return err
	})
	return found, err
}

func (c *call) describeEvent(ctx context.Context, found repository.FoundEvent, h *head) (repository.FoundEvent, error) {
	gates := make(map[domain.Group]*gate)
	if err := c.readGates(ctx, found.Recipient, c.r.opts.Groups.All(), gates); err != nil {
		return found, err
	}
	found.Mailbox = repository.MailboxState{Frozen: anyFrozen(gates)}
	if found.IsReserved {
		return found, nil
	}
	g, name := gates[found.Group], nameOf(found.Cabinet())
	last := h.Cabinets[name]
	at := g.positionIn(name, last)
	found.IsAcknowledged = found.Sequence <= at.Sequence
	var err error
	if found.Bundles, found.HasMore, err = c.bundlesOf(ctx, &found, g); err != nil {
		return found, err
	}
	if found.IsAcknowledged {
		found.Before = 0
		return found, nil
	}
	if found.Before, err = c.countBefore(ctx, &found, last, h.cabinetFloor(name), at); err != nil {
		return found, err
	}
	if g.Open != "" {
		doc, err := c.readOpen(ctx, g)
		if err != nil {
			return found, err
		}
		b, err := doc.toBundle()
		found.Mailbox.Open = &b
		return found, err
	}
	return found, c.describeFront(ctx, &found, gates, h)
}

// countBefore returns the number of events of the cabinet that wait before an event. It returns -1 if more
// than countedDrawers drawers are between the gate and the event.
func (c *call) countBefore(ctx context.Context, found *repository.FoundEvent, last cabinetState, floor int, at position) (int64, error) {
	s := found.Slot
	switch {
	case s.Ordinal == last.Ordinal && last.Drawer != "":
		return last.Total - int64(last.Fill-s.Slot) - at.Total, nil
	case s.Ordinal == at.Ordinal:
		return int64(s.Slot - at.Slot), nil
	}
	first := max(at.Ordinal, floor, 1)
	if s.Ordinal-first > countedDrawers {
		return -1, nil
	}
	extents, err := c.readExtents(ctx, found.Cabinet(), last, first, s.Ordinal-first)
	if err != nil {
		return 0, err
	}
	n := int64(s.Slot)
	for _, e := range extents {
		if e.ordinal < s.Ordinal {
			n += int64(e.limit - e.slotBehind(at))
		}
	}
	return n, nil
}

// bundlesOf returns the bundles that contain or contained an event, in the order in which they were
// opened. hasMore reports whether the search ended early. The search always covers the open bundle and the
// bundle that was closed last.
func (c *call) bundlesOf(ctx context.Context, e *repository.FoundEvent, g *gate) (found []repository.FoundBundle, hasMore bool, err error) {
	key := e.Recipient.String()
	var docs []*foundBundleDoc
	add := func(doc *foundBundleDoc) {
		isKnown := slices.ContainsFunc(docs, func(other *foundBundleDoc) bool { return other.ID == doc.ID })
		if doc.Cabinet == nameOf(e.Cabinet()) && doc.First <= e.Sequence && e.Sequence <= doc.Last && !isKnown {
			docs = append(docs, doc)
		}
	}
	search := c.renewCall()
	q := search.Query(c.r.db.bundles, key,
		"SELECT * FROM c WHERE c.kind = @kind AND c.cabinet = @cabinet AND c.first <= @number AND c.last >= @number",
		azcosmos.QueryParameter{Name: "@kind", Value: bundleKind}, azcosmos.QueryParameter{Name: "@cabinet", Value: nameOf(e.Cabinet())},
		azcosmos.QueryParameter{Name: "@number", Value: e.Sequence})
	for !q.IsDone() {
		if hasMore = search.Units() > bundleSearchUnits; hasMore {
			break
		}
		items, err := q.Next(ctx, 100)
		if err != nil {
			return nil, false, err
		}
		for _, item := range items {
			doc := &foundBundleDoc{}
			if err := q.Decode(item, doc); err != nil {
				return nil, false, err
			}
			add(doc)
		}
	}
	for _, id := range []string{g.Open, g.Last} {
		if id == "" || !hasMore {
			continue
		}
		doc := &foundBundleDoc{}
		_, err := c.Read(ctx, c.r.db.bundles, key, id, doc)
		switch {
		case err == nil:
			add(doc)
		case !client.IsNotFound(err):
			return nil, false, err
		}
	}
	slices.SortFunc(docs, func(a, b *foundBundleDoc) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.ID, b.ID))
	})
	for _, doc := range docs {
		b, err := doc.foundBundle(g.Frozen)
		if err != nil {
			return nil, false, err
		}
		found = append(found, b)
	}
	return found, hasMore, nil
}

// describeFront stores in found the first waiting event of the group, if that event is in another cabinet.
// It also stores whether the first waiting event of the cabinet of found is lost. It reads the same
// documents as a Peek, but repairs nothing.
func (c *call) describeFront(ctx context.Context, found *repository.FoundEvent, gates map[domain.Group]*gate, h *head) error {
	candidates, _, err := c.findCandidates(found.Recipient, map[domain.Group]*gate{found.Group: gates[found.Group]}, h)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(candidates, func(cand *peekCandidate) bool { return cand.cabinet == found.Cabinet() })
	if i < 0 {
		return client.ErrStale // the read was stale: at least the found event waits
	}
	own := candidates[i]
	if err := own.setFirstFromHead(); err != nil {
		return err
	}
	if !own.isInTail() {
		if err := own.recordLoss(own.readFirst(ctx, c)); err != nil {
			return err
		}
	}
	if own.isLost() {
		found.Mailbox.Lost = own.lost.Error()
		return nil
	}
	others := slices.Delete(candidates, i, i+1)
	var unknown []*peekCandidate
	for _, cand := range others {
		if err := cand.setFirstFromHead(); err != nil {
			return err
		}
		if cand.first == 0 {
			unknown = append(unknown, cand)
		}
	}
	if c.r.usesEntries() {
		if err := c.readEntries(ctx, unknown); err != nil {
			return err
		}
	}
	compared := 0
	for _, cand := range unknown {
		switch {
		case c.r.usesEntries() && cand.canTrustEntry():
			cand.first = cand.entry.NextSequence
		case compared < comparedCandidates:
			compared++
			if err := cand.recordLoss(cand.readFirst(ctx, c)); err != nil {
				return err
			}
		}
	}
	first := own.first
	for _, cand := range others {
		if cand.first > 0 && !cand.isLost() && cand.first < first {
			first, found.FirstWaiting = cand.first, &repository.FirstWaiting{Cabinet: cand.cabinet, Sequence: cand.first}
		}
	}
	return nil
}
