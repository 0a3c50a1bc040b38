package cosmos

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// shortFilters contains stored filters that do not cover all slots of their drawers. The value is nil if
// no filter of the drawer is stored.
type shortFilters map[blockSegment]*loadedFilter

// completeShort completes the filters of the drawers in short, in the order of their ordinals. It prefers
// a stored filter in an older format, if there is one.
func (cab *cabinetIndex) completeShort(ctx context.Context, c *call, short shortFilters) error {
	for len(short) > 0 {
		drawers := slices.SortedFunc(maps.Keys(short), blockSegment.compare)
		limit := len(drawers)
		if limit > drawersPerBundle {
			limit = 0 // with no limit, fewer requests are needed
		}
		extents, err := c.readExtents(ctx, cab.cabinet, cab.last, drawers[0].firstOrdinal(), limit)
		if err != nil {
			return err
		}
		if len(extents) == 0 {
			return client.ErrNotYetVisible
		}
		if err := cab.completeFilters(ctx, c, extents, short); err != nil {
			return err
		}
	}
	return nil
}

// completeFilters completes the filters of the drawers that are in extents and in short, and removes
// these drawers from short.
func (cab *cabinetIndex) completeFilters(ctx context.Context, c *call, extents []extent, short shortFilters) error {
	filters := make([]*residentFilter, len(extents))
	var g errgroup.Group // without a context, so that a failure does not cancel filters that the next attempt can use
	var failed atomic.Bool
	g.SetLimit(drawersPerBundle)
	for i, e := range extents {
		f, isShort := short[drawerSegment(e.ordinal)]
		if failed.Load() || !isShort {
			continue
		}
		known := openDrawer{drawer: e.drawer, ordinal: e.ordinal, stored: &storedFilter{}}
		known.adoptStored(f, e.limit, e.limit)
		if cab.previous.drawer == e.drawer && cab.previous.fill > known.fill {
			known = cab.previous
		}
		g.Go(func() (err error) {
			filters[i], err = c.completeFilter(ctx, cab.cabinet, e, &known, f != nil)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	err := g.Wait()
	for i, f := range filters { // also after a failure, so that the next attempt needs fewer reads
		if f != nil {
			cab.admitFilter(drawerSegment(extents[i].ordinal), f)
			delete(short, drawerSegment(extents[i].ordinal))
		}
	}
	return err
}

// completeFilter returns the filter of a sealed drawer, and queues a hint that stores this filter for the
// next reader. known contains the events in the first slots of the drawer.
func (c *call) completeFilter(ctx context.Context, cabinet domain.CabinetKey, e extent, known *openDrawer, hasFilter bool) (*residentFilter, error) {
	if known.fill < e.limit && !hasFilter {
		older, err := c.readOlderFilter(ctx, e)
		if err != nil {
			return nil, err
		}
		if older != nil {
			return &residentFilter{older: older}, nil
		}
	}
	if known.fill < e.limit {
		ids, hasLost, err := c.readIDs(ctx, cabinet, slotRange{Drawer: e.drawer, Ordinal: e.ordinal, From: known.fill, To: e.limit}, nil) // the last argument is nil because a sealed drawer has no tail
		if err != nil {
			return nil, err
		}
		known.foldIDs()
		known.ids, known.fill, known.hasLost = ids, e.limit, known.hasLost || hasLost
	}
	f := known.drawerFilter()
	f.sealed = true
	if !known.hasLost && !c.withoutHints {
		c.r.hints.addFilter(cabinet, f, known.stored)
	}
	return &residentFilter{set: f.set, hasLost: known.hasLost}, nil
}
