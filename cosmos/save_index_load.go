package cosmos

import (
	"context"
	"maps"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A loadedDrawer contains the ids and digests of the events of a drawer, in the slots below until.
type loadedDrawer struct {
	ids     map[domain.EventID]domain.Digest
	until   int
	isWhole bool // whether the drawer is sealed and ids contains all its events
}

// loadDrawer returns the events of a drawer. For the drawer that is being filled, it returns only the
// events whose digests are not in memory. Each Save reads a drawer at most once, except for events that
// were added before a repeated attempt.
func (cab *cabinetIndex) loadDrawer(ctx context.Context, c *call, ordinal int) (map[domain.EventID]domain.Digest, error) {
	isOpen := cab.last.Drawer != "" && ordinal == cab.last.Ordinal
	known, ok := cab.loaded[ordinal]
	if ok && (known.isWhole || isOpen && known.until >= cab.open.from) {
		return known.ids, nil
	}
	extents, err := c.readExtents(ctx, cab.cabinet, cab.last, ordinal, 1)
	if err != nil {
		return nil, err
	}
	newest, err := cab.last.decodeTail(cab.cabinet)
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cab.cabinet), err)
	}
	if len(extents) == 0 {
		return nil, client.ErrNotYetVisible
	}
	e := extents[0]
	if !e.sealed {
		e.limit = min(cab.open.from, e.limit) // the digests of later events are in memory
	}
	ids, _, err := c.readIDs(ctx, cab.cabinet, slotRange{Drawer: e.drawer, Ordinal: ordinal, From: known.until, To: e.limit}, newest)
	if err != nil {
		return nil, err
	}
	maps.Copy(ids, known.ids)
	if cab.loaded == nil {
		cab.loaded = make(map[int]loadedDrawer)
	}
	cab.loaded[ordinal] = loadedDrawer{ids: ids, until: e.limit, isWhole: e.sealed}
	return ids, nil
}

// pagesOfIndex is the number of pages that the index reads in one request: 2 MB if the pages are full. It
// is large because the index needs all these pages.
const pagesOfIndex = 32

// readIDs reads the ids and digests of the events in a range of slots. newest is the tail of the cabinet,
// which may contain some of these slots. hasLost reports that some of the events are lost.
func (c *call) readIDs(ctx context.Context, cabinet domain.CabinetKey, s slotRange, newest *tail) (ids map[domain.EventID]domain.Digest, hasLost bool, err error) {
	ids = make(map[domain.EventID]domain.Digest, min(s.To-s.From, maxRound))
	read := c.readDrawer(cabinet, s, newest)
	read.size = pagesOfIndex
	for !read.isDone() {
		events, err := read.readNext(ctx)
		if err != nil {
			if _, err := read.skipLost(ctx, err); err != nil {
				return nil, false, err
			}
			hasLost = true
			continue
		}
		for i := range events {
			ids[events[i].ID] = events[i].digest
		}
	}
	return ids, hasLost, nil
}
