package cosmos

import (
	"context"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// After a failover or a restored backup, each partition may have the state of a different time. A head that
// has lost more writes than a gate would assign slots and numbers that are below the position of the gate.
// Events with these slots would never be peeked. So before its first Save to a group, a writer reads the
// head and the gate of the group concurrently, and compares them. It also queries for drawers ahead of the
// head; see save_ahead.go. If a gate is in front of the head, or a drawer is ahead of the head, it compares
// the head with all gates, queries all cabinets for drawers, and raises the head above all gates and drawers
// in two steps:
//
//  1. An intent that is aborted from the beginning names the drawer in the head, stored drawers with
//     higher ordinals, and an empty drawer for each missing ordinal. Its rollback seals these drawers and
//     raises the head above their ordinals. A drawer that was not sealed is sealed after its pages, so
//     that events which only the head has lost are retained. The write of the intent also sets Raise in
//     the cabinets of the head, because after the rollback no other member records that a raise is in
//     progress.
//  2. The numbers and the totals of the cabinets are raised above the position of the gate, and above the
//     events in the sealed drawers after that position. Raise is cleared.
//
// Each step replaces the head on condition of the etag of the compared head, so it is refused if that head
// was stale. The gate may be stale: if no write was lost, no present or past gate is in front of the
// current head.

// raiseHead takes the next step to raise the head above the drawers of the cabinets in lost, and above
// the positions of the gates in lost. w.head must have no intent. If the step succeeds, the error is
// client.ErrStale, and the caller reads the head again.
func (w *recipientWriter) raiseHead(ctx context.Context, c *call, lost map[cabinetName]position) error {
	base, it := w.head, &intent{ID: w.r.client.NewID(), Owner: w.r.owner, Aborted: true, First: w.head.Reserved + 1, Last: w.head.Reserved}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		at := lost[name]
		it.Last = max(it.Last, at.Sequence)
		if name == removedCabinets {
			continue
		}
		var parts []drawerPart
		var err error
		if base, parts, err = w.partsToSeal(ctx, c, base, name, at); err != nil {
			return err
		}
		it.Parts = append(it.Parts, parts...)
	}
	if len(it.Parts) == 0 {
		return w.raiseNumbers(ctx, c, lost)
	}
	next := base.clone()
	next.Reserved, next.Intent = it.Last, it
	for name := range lost {
		if name != removedCabinets {
			last := next.cabinetState(name)
			last.Raise = true
			next.Cabinets[name] = last
		}
	}
	// If the node crashes after this write, any writer completes the rollback of the aborted intent.
	// Raise remains set in the head, and the next writer raises the numbers.
	if err := w.writeHead(ctx, c, next); err != nil {
		return asStale(err)
	}
	w.index = newIndex(w.recipient, w.r.indexLimit()) // the old index may contain lost events
	c.AddRetries(len(it.Parts))
	return w.rollBackIntent(ctx, c)
}

// maxRaise limits the number of drawers by which a head is raised, because the intent that lists these
// drawers must fit into a document. A gate that is farther in front is damaged, or the backup is from a
// different hub.
const maxRaise = 10_000

// partsToSeal returns the drawers of a cabinet that must be sealed, or created as sealed, before the head
// can be raised above them. It first writes the tail of the cabinet to a page. It also returns h without
// this tail; the caller adds the intent to the returned head.
func (w *recipientWriter) partsToSeal(ctx context.Context, c *call, h *head, name cabinetName, at position) (*head, []drawerPart, error) {
	cabinet, err := cabinetOf(w.recipient, name)
	if err != nil {
		return nil, nil, err
	}
	floor, last := h.cabinetFloor(name), h.cabinetState(name)
	found, err := client.All[drawer](ctx, c.Query(w.r.db.cabinets, cabinetKey(cabinet),
		"SELECT * FROM c WHERE c.ordinal >= @from ORDER BY c.ordinal", azcosmos.QueryParameter{Name: "@from", Value: floor}))
	if err != nil {
		return nil, nil, err
	}
	stored, highest := make(map[int]*drawer, len(found)), max(last.Ordinal, at.Ordinal)
	for _, d := range found {
		if stored[d.Ordinal] == nil || d.ID == last.Drawer {
			stored[d.Ordinal] = d
		}
		if d.Ordinal <= highest+maxOrdinalGap { // found is sorted by ordinal
			highest = max(highest, d.Ordinal)
		}
	}
	// Each drawer that the gate has passed contained an event, unless a rollback has sealed the drawer
	// empty.
	if events := max(at.Total-last.Total, 0); at.Ordinal-last.Ordinal > maxOrdinalGap && int64(at.Ordinal-last.Ordinal) > 2*events+maxOrdinalGap {
		return nil, nil, domain.Errorf(domain.Damaged, "cabinet %s: its gate is %d drawers in front of its head, and %d events", cabinetKey(cabinet), at.Ordinal-last.Ordinal, events)
	}
	if highest-last.Ordinal > maxRaise {
		return nil, nil, domain.Errorf(domain.Damaged, "cabinet %s: its head is at drawer %d, and a gate or a drawer at %d", cabinetKey(cabinet), last.Ordinal, highest)
	}
	var parts []drawerPart
	for ordinal := floor; ordinal <= highest; ordinal++ {
		p := drawerPart{Cabinet: name, Ordinal: ordinal, New: true, First: h.Reserved + 1}
		d := stored[ordinal]
		isNamed := ordinal == last.Ordinal && last.Drawer != ""
		switch {
		case isNamed:
			p.Drawer = last.Drawer
			if h, p.Slot, err = w.sealedFill(ctx, c, h, cabinet, d); err != nil {
				return nil, nil, err
			}
		case ordinal <= last.Ordinal && (d != nil || w.r.db.ReadsMayBeStale()): // the next reader of the drawer seals it
			continue
		case d == nil:
			p.Drawer = w.r.client.NewID()
		default:
			p.Drawer, p.Slot = d.ID, d.Count
			if !d.Sealed {
				p.Slot = max(d.Count, c.pagesEnd(ctx, cabinet, d.ID, ordinal, 0))
			}
		}
		parts = append(parts, p)
	}
	return h, parts, nil
}

// sealedFill returns the slot at which the drawer in a head must be sealed, and the head without the tail
// of the cabinet. d is the document of the drawer, or nil if the drawer has no document.
func (w *recipientWriter) sealedFill(ctx context.Context, c *call, h *head, cabinet domain.CabinetKey, d *drawer) (*head, int, error) {
	name := nameOf(cabinet)
	last := h.Cabinets[name]
	if d != nil && d.Sealed && d.Count >= last.Fill {
		return h.dropTail(name), d.Count, nil // a flush has written the tail before the drawer was sealed
	}
	if end := c.pagesEnd(ctx, cabinet, last.Drawer, last.Ordinal, last.inPages()); end >= last.Fill {
		return h.dropTail(name), end, nil
	}
	for len(h.Cabinets[name].Tail) > 0 {
		t, err := h.Cabinets[name].decodeTail(cabinet)
		if err != nil {
			return nil, 0, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cabinet), err)
		}
		// A crash after this write leaves a page, which the next attempt finds. The rollback of the
		// intent counts the events of the page.
		until, err := c.createFlushedPage(ctx, cabinet, t, w.r.client.NewID())
		if err != nil {
			return nil, 0, err
		}
		h = h.withFlushed(name, t, until)
	}
	return h, last.Fill, nil
}

// dropTail returns h without the tail of a cabinet whose events are in pages.
func (h *head) dropTail(name cabinetName) *head {
	last := h.Cabinets[name]
	if len(last.Tail) == 0 {
		return h
	}
	c := h.clone()
	last.Paged, last.Tail, last.Saves = 0, nil, nil
	c.Cabinets[name] = last
	return c
}

// pagesEnd returns the slot after the consecutive pages that begin at slot from.
func (c *call) pagesEnd(ctx context.Context, cabinet domain.CabinetKey, id string, ordinal, from int) int {
	read := c.readDrawer(cabinet, slotRange{Drawer: id, Ordinal: ordinal, From: from, To: maxSlots}, nil)
	for {
		if _, err := read.readNext(ctx); err != nil {
			return read.at
		}
	}
}

// raiseHead raises the head of a recipient above all gates in front of it and all drawers ahead of it. A
// check with repair calls it.
func (c *call) raiseHead(ctx context.Context, recipient domain.ActorID) error {
	w := newWriter(c.r, recipient)
	return c.Retry(ctx, func() error {
		w.head = nil
		if err := w.readHead(ctx, c); err != nil {
			return err
		}
		if w.head.Intent != nil {
			return w.resolveIntent(ctx, c)
		}
		return w.raiseLosses(ctx, c)
	})
}
