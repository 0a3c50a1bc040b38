package cosmos

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A locatedEvent is an event and its location.
type locatedEvent struct {
	storedEvent
	repository.EventSlot
	isReserved bool                // the event belongs to the intent of a head, and is not visible yet
	save       domain.TraceContext // span of the Save; zero if no span is stored
}

// locateEvent returns the events with an id in a mailbox, and the unreadable parts of the mailbox.
func (c *call) locateEvent(ctx context.Context, q *repository.EventQuery, recipient domain.ActorID, h *head) (located []locatedEvent, unread []string, err error) {
	searched := h.clone()
	maps.DeleteFunc(searched.Cabinets, func(name cabinetName, _ cabinetState) bool { return !isOfOrigin(recipient, name, q.Origin) })
	x := newIndex(recipient, findIndexBytes)
	if err := x.refresh(ctx, c, searched, []domain.EventID{q.ID}); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(x.cabinets)) {
		some, lost, err := x.cabinets[name].locateEvent(ctx, c, q.ID)
		if err != nil {
			return nil, nil, err
		}
		located, unread = append(located, some...), append(unread, lost...)
	}
	if h.Intent == nil {
		return located, unread, nil
	}
	for i := range h.Intent.Parts {
		part := &h.Intent.Parts[i]
		if !isOfOrigin(recipient, part.Cabinet, q.Origin) {
			continue
		}
		some, err := c.locateReserved(ctx, recipient, q.ID, h.Intent.ID, part)
		if err != nil {
			return nil, nil, err
		}
		located = append(located, some...)
	}
	return located, unread, nil
}

// isOfOrigin reports whether a cabinet belongs to an origin. A zero origin matches any cabinet. A damaged
// name matches every origin, so that the damage is reported.
func isOfOrigin(recipient domain.ActorID, name cabinetName, origin domain.Origin) bool {
	cabinet, err := cabinetOf(recipient, name)
	return origin.IsZero() || err != nil || cabinet.Origin == origin
}

// locateEvent returns the events with an id in a cabinet, and the lost parts of the cabinet. The index
// must have been refreshed for the id.
func (cab *cabinetIndex) locateEvent(ctx context.Context, c *call, id domain.EventID) (located []locatedEvent, lost []string, err error) {
	hash := hashOf(id)
	suspects, err := cab.findSuspects(ctx, c, []uint64{hash})
	if err != nil {
		return nil, nil, err
	}
	newest, err := cab.last.decodeTail(cab.cabinet)
	if err != nil {
		return nil, nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cab.cabinet), err)
	}
	if newest != nil {
		for i := range newest.events {
			if e := &newest.events[i]; e.ID == id {
				located = append(located, locatedEvent{storedEvent: *e, EventSlot: repository.EventSlot{
					Drawer: newest.drawer, Ordinal: cab.last.Ordinal, Slot: newest.paged + i, InHead: true,
				}, save: spanAt(newest.saves, newest.paged+i)})
			}
		}
	}
	from := make(map[int]int) // slot at which the search of a drawer begins, by ordinal
	if _, isKnown := cab.open.ids[id]; isKnown {
		from[cab.open.ordinal] = cab.open.from
	}
	for _, ordinal := range suspects[hash] {
		from[ordinal] = 0
	}
	for _, ordinal := range slices.Sorted(maps.Keys(from)) {
		e, err := cab.locateInDrawer(ctx, c, id, ordinal, from[ordinal])
		if err != nil {
			return nil, nil, err
		}
		if e != nil {
			located = append(located, *e)
		}
	}
	if cab.hasLost() {
		lost = append(lost, fmt.Sprintf("pages of cabinet %s are lost, and the ids of their events are not known", cabinetKey(cab.cabinet)))
	}
	return located, lost, nil
}

// hasLost reports whether the index has found lost events so far.
func (cab *cabinetIndex) hasLost() bool {
	for _, f := range cab.resident {
		if f.hasLost {
			return true
		}
	}
	return cab.open.hasLost
}

// locateInDrawer reads the pages of a drawer up to an event. It returns nil if the drawer does not have
// the event.
func (cab *cabinetIndex) locateInDrawer(ctx context.Context, c *call, id domain.EventID, ordinal, from int) (*locatedEvent, error) {
	extents, err := c.readExtents(ctx, cab.cabinet, cab.last, ordinal, 1)
	if err != nil {
		return nil, err
	}
	if len(extents) == 0 {
		return nil, client.ErrNotYetVisible
	}
	e := extents[0]
	if !e.sealed {
		e.limit = min(e.limit, cab.last.inPages())
	}
	read := c.readDrawer(cab.cabinet, slotRange{Drawer: e.drawer, Ordinal: ordinal, From: from, To: e.limit}, nil)
	var saves pageSaves
	read.saves = &saves
	for !read.isDone() {
		first := read.at
		events, err := read.readNext(ctx)
		if err != nil {
			if _, err := read.skipLost(ctx, err); err != nil {
				return nil, err
			}
			continue
		}
		for i := range events {
			if events[i].ID == id {
				slot := first + i
				return &locatedEvent{
					storedEvent: events[i], EventSlot: repository.EventSlot{Drawer: e.drawer, Ordinal: ordinal, Slot: slot}, save: spanAt(saves.runs[ordinal], slot),
				}, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // a filter may be wrong
}

// locateReserved returns the events with an id in the pages of an intent. The commit of the intent makes
// these events visible.
func (c *call) locateReserved(ctx context.Context, recipient domain.ActorID, id domain.EventID, intent string, part *drawerPart) (located []locatedEvent, err error) {
	cabinet, err := cabinetOf(recipient, part.Cabinet)
	if err != nil {
		return nil, err
	}
	pages, err := client.All[drawerPage](ctx, c.Query(c.r.db.cabinets, part.Drawer, "SELECT * FROM c WHERE c.until > @from ORDER BY c.until",
		azcosmos.QueryParameter{Name: "@from", Value: part.Slot}))
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		if p.Intent != intent {
			continue
		}
		err := p.decodeEvents(cabinet, func(slot int, e *storedEvent) bool {
			if e.ID == id {
				located = append(located, locatedEvent{
					storedEvent: *e, EventSlot: repository.EventSlot{Drawer: part.Drawer, Ordinal: part.Ordinal, Slot: slot}, isReserved: true,
					save: spanAt(p.saveRuns(), slot),
				})
			}
			return true
		})
		if err != nil {
			return nil, domain.Errorf(domain.Damaged, "page %s of drawer %s: %w", p.ID, part.Drawer, err)
		}
	}
	return located, nil
}
