package cosmos

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// A cabinetIndex is the part of an index for one cabinet.
type cabinetIndex struct {
	cabinet domain.CabinetKey
	limit   int // limit for the memory of filters, in bytes

	last   cabinetState // state of the cabinet in the newest observed head
	floor  int          // drawers with a smaller ordinal may have been removed
	sealed int          // drawers up to this ordinal are full or sealed
	blocks []block      // blocks that together cover the drawers from floor to sealed

	open     openDrawer
	previous openDrawer // drawer that was filled before open; empty if that drawer was full
	resident map[blockSegment]*residentFilter
	bytes    int // size of the filters in resident, in bytes
	uses     useTime
	loaded   map[int]loadedDrawer // drawers that were read for the current Save, by ordinal
	lacking  lackingFilters       // filters that an earlier attempt of the current Save did not find
}

func newCabinetIndex(cabinet domain.CabinetKey, limit int) *cabinetIndex {
	return &cabinetIndex{cabinet: cabinet, limit: limit, floor: 1, resident: make(map[blockSegment]*residentFilter)}
}

// observe updates the state of the cabinet from a head, unless a newer head was observed.
func (cab *cabinetIndex) observe(last cabinetState, floor int) {
	sealed := last.Ordinal
	if last.Drawer != "" {
		sealed--
	}
	if sealed < cab.sealed || sealed == cab.sealed && last.Drawer == cab.last.Drawer && last.Fill < cab.last.Fill {
		last, sealed = cab.last, cab.sealed
	}
	isOpen := last.Drawer == cab.open.drawer && last.Ordinal == cab.open.ordinal // a damaged head may have a different ordinal for the same drawer, so both are compared
	if floor <= cab.floor && sealed == cab.sealed && isOpen {
		cab.last = last
		return
	}
	if !isOpen {
		if cab.open.drawer != "" {
			cab.previous = cab.open
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

// isComplete reports whether the index contains all events in the drawer that is being filled.
func (cab *cabinetIndex) isComplete() bool {
	return cab.last.Drawer == "" || cab.open.fill >= cab.last.Fill
}

// catchUp reads the missing events of the drawer that is being filled, and the filters for the first
// hashes.
func (cab *cabinetIndex) catchUp(ctx context.Context, c *call, hashes []uint64) error {
	if n := cab.last.inPages(); len(cab.blocks) == 0 && costOfPages(n, n) <= maxUnread {
		cab.open.isFilterRead = true // no filter is stored for so few pages
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
	if unread <= read.pagesRead*costOfPages(1, c.r.opts.TailEvents) && c.r.opts.TailEvents > 0 { // the pages were flushed from tails
		unread *= smallSaves
	}
	cab.open.unread += unread + costOfTail(inTail)
	if !c.withoutHints {
		cab.storeFilter(c.r, cab.last)
	}
	return nil
}

// storeFilter queues a hint that stores the filter of the drawer that is being filled, if the stored
// filter lacks too many pages. last is the state of the cabinet in a head. The filter covers no slot of
// the tail, because a failover may lose the tail but not the filter, and these slots are then filled with
// different events.
func (cab *cabinetIndex) storeFilter(r *Repository, last cabinetState) {
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

// add adds the events of a committed part to the index. If the part begins a new drawer, the previous
// drawer is full, and add queues a hint that seals it, so that no reader has to. inTail states that the
// events are in the tail.
func (cab *cabinetIndex) add(r *Repository, part *drawerPart, events []numberedEvent, inTail bool) {
	last := cabinetState{Drawer: part.Drawer, Ordinal: part.Ordinal, Fill: part.endSlot()}
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
		cab.open.isFilterRead = true // no filter is stored for a new drawer
	}
	if cab.open.drawer != part.Drawer || cab.open.fill != part.Slot {
		return // the index lacks events before the part, which refresh will read
	}
	cab.last = last
	if cab.open.misfit != "" { // checked only after a commit, because with a stale head, every filter may seem to be a misfit
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
