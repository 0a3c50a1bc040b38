package cosmos

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// A cabinetIndex is the part of the index for one cabinet.
type cabinetIndex struct {
	cabinet domain.CabinetKey
	limit   int // for the memory of filters, in bytes

	last   received // state of the cabinet in the newest head that was observed
	floor  int      // drawers with a smaller ordinal are not retained
	sealed int      // drawers up to this ordinal are full or sealed
	blocks []block  // the blocks that cover the drawers from floor to sealed

	open     openDrawer
	left     openDrawer // the drawer that was filled before, if it was not full
	resident map[blockSegment]*residentFilter
	bytes    int // size of resident
	uses     useTime
	loaded   map[int]loadedDrawer // drawers that were read for this Save, by ordinal
	lacking  lackingFilters       // filters that an earlier attempt of this Save did not find
}

func newCabinetIndex(cabinet domain.CabinetKey, limit int) *cabinetIndex {
	return &cabinetIndex{cabinet: cabinet, limit: limit, floor: 1, resident: make(map[blockSegment]*residentFilter)}
}

// observe adopts the state of the cabinet in a head, unless a newer head was observed.
func (cab *cabinetIndex) observe(last received, floor int) {
	sealed := last.Ordinal
	if last.Drawer != "" {
		sealed--
	}
	if sealed < cab.sealed || sealed == cab.sealed && last.Drawer == cab.last.Drawer && last.Fill < cab.last.Fill {
		last, sealed = cab.last, cab.sealed
	}
	isOpen := last.Drawer == cab.open.drawer && last.Ordinal == cab.open.ordinal // in a damaged head, only one of them may be the same
	if floor <= cab.floor && sealed == cab.sealed && isOpen {
		cab.last = last
		return
	}
	if !isOpen {
		if cab.open.drawer != "" {
			cab.left = cab.open
		}
		cab.open = openDrawer{drawer: last.Drawer, ordinal: last.Ordinal, stored: &storedFilter{}}
	}
	cab.last, cab.sealed, cab.floor = last, sealed, max(floor, cab.floor)
	cab.blocks, cab.lacking = blocksBetween(cab.floor, cab.sealed), lackingFilters{}
	for at := range cab.resident {
		if at.endOrdinal() <= cab.floor {
			cab.evictFilter(at)
		}
	}
}

// isComplete reports whether the index has all events in the drawer that is being filled.
func (cab *cabinetIndex) isComplete() bool {
	return cab.last.Drawer == "" || cab.open.fill >= cab.last.Fill
}

// catchUp reads the events that the index lacks in the drawer that is being filled and, in the same
// query, the filters for the first hashes.
func (cab *cabinetIndex) catchUp(ctx context.Context, c *call, hashes []uint64) error {
	if n := cab.last.inPages(); len(cab.blocks) == 0 && costOfPages(n, n) <= maxUnread {
		cab.open.looked = true // there is no filter yet
	}
	if err := cab.fetchFilters(ctx, c, hashes[:cab.countFitting(hashes)]); err != nil {
		return err
	}
	if cab.isComplete() {
		return nil
	}
	newest, err := cab.last.decodeTail(cab.cabinet)
	if err != nil {
		return domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cab.cabinet), err)
	}
	read := c.readDrawer(cab.cabinet, slotRange{Drawer: cab.open.drawer, Ordinal: cab.open.ordinal, From: cab.open.fill, To: cab.last.Fill}, newest)
	read.size = pagesOfIndex
	before := cab.open.fill
	for !read.isDone() {
		events, err := read.readNext(ctx)
		if err != nil {
			lost, err := read.skipLost(ctx, err)
			if err != nil {
				return err
			}
			cab.open.fill, cab.open.hasLost = lost.To, true
			continue
		}
		for i := range events {
			cab.open.add(events[i].ID, events[i].digest)
		}
	}
	inTail := max(0, cab.last.Fill-max(before, cab.last.inPages()))
	unread := costOfPages(read.pagesRead, cab.open.fill-before-inTail)
	if unread <= read.pagesRead*costOfPages(1, c.r.opts.TailEvents) && c.r.opts.TailEvents > 0 { // the pages were tails
		unread *= smallSaves
	}
	cab.open.unread += unread + costOfTail(inTail)
	if !c.withoutHints {
		cab.storeFilter(c.r, cab.last)
	}
	return nil
}

// storeFilter queues a hint that stores the filter of the drawer that is being filled, if too many of
// its pages are not in the stored one. last is the state of the cabinet in a head. The filter covers no
// slot of the tail: a failover may lose the head with the tail but keep the filter, and then other
// events fill these slots.
func (cab *cabinetIndex) storeFilter(r *Repository, last received) {
	if cab.open.drawer != last.Drawer || cab.open.fill < last.inPages() || cab.open.hasLost {
		return
	}
	inTail := costOfTail(last.tailLen())
	if cab.open.unread-inTail < maxUnread {
		return
	}
	cab.open.unread = inTail
	f := cab.open.drawerFilter()
	f.count = last.inPages()
	r.hints.addFilter(cab.cabinet, f, cab.open.stored)
}

// add adds the events of a committed part. If its drawer is new, the previous one is full, and is
// sealed by a hint rather than by its next reader. inTail says that the events are in the tail.
func (cab *cabinetIndex) add(r *Repository, part *drawerPart, events []numbered, inTail bool) {
	last := received{Drawer: part.Drawer, Ordinal: part.Ordinal, Fill: part.endSlot()}
	if part.New {
		before := cab.open
		cab.observe(last, cab.floor)
		if before.drawer != "" && before.ordinal == part.Ordinal-1 {
			f := before.drawerFilter()
			f.sealed = true
			cab.admitFilter(drawerSegment(f.ordinal), &residentFilter{set: f.set, hasLost: before.hasLost})
			if !before.hasLost {
				r.hints.addSealed(cab.cabinet, f, before.stored, cab.mergeBehind(f.ordinal), cab.floor)
			}
		}
		cab.open.looked = true // there is no filter yet
	}
	if cab.open.drawer != part.Drawer || cab.open.fill != part.Slot {
		return // there are events between: refresh reads them
	}
	cab.last = last
	if cab.open.misfit != "" { // not earlier: with a stale head every filter seems to be a misfit
		cab.open.stored = &storedFilter{etag: cab.open.misfit, count: -1}
		cab.open.misfit, cab.open.unread = "", cab.open.unread+maxUnread
	}
	for _, e := range events {
		cab.open.add(e.ID, e.digest)
	}
	if inTail {
		cab.open.unread += costOfTail(part.Count) + costOfSmaller
	} else {
		cab.open.unread += costOfPages(1, part.Count)
	}
}
