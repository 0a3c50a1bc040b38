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

// shortFilters has the stored filters that do not cover all of their drawers. A nil filter means that
// none is stored.
type shortFilters map[blockSegment]*loadedFilter

// completeShort makes filters of the drawers in short, in the order of their ordinals. It uses a filter
// of an older version as it is.
func (cab *cabinetIndex) completeShort(ctx context.Context, c *call, short shortFilters) error {
	for len(short) > 0 {
		drawers := slices.SortedFunc(maps.Keys(short), blockSegment.compare)
		limit := len(drawers)
		if limit > drawersPerBundle {
			limit = 0 // read everything in few requests
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

// completeFilters makes the filters of those extents whose drawers are in short, and removes them from
// short.
func (cab *cabinetIndex) completeFilters(ctx context.Context, c *call, extents []extent, short shortFilters) error {
	filters := make([]*residentFilter, len(extents))
	var g errgroup.Group // without a context: if one filter fails, the others are still completed, for the next attempt
	var failed atomic.Bool
	g.SetLimit(drawersPerBundle)
	for i, e := range extents {
		f, isShort := short[drawerSegment(e.ordinal)]
		if failed.Load() || !isShort {
			continue
		}
		known := openDrawer{drawer: e.drawer, ordinal: e.ordinal, stored: &storedFilter{}}
		known.adoptStored(f, e.limit, e.limit)
		if cab.left.drawer == e.drawer && cab.left.fill > known.fill {
			known = cab.left
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
	for i, f := range filters { // even if one could not be read: the next attempt continues with it
		if f != nil {
			cab.admitFilter(drawerSegment(extents[i].ordinal), f)
			delete(short, drawerSegment(extents[i].ordinal))
		}
	}
	return err
}

// completeFilter returns the filter of a sealed drawer. known covers some of its slots. It stores the
// filter for the next reader.
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
		ids, hasLost, err := c.readIDs(ctx, cabinet, slotRange{Drawer: e.drawer, Ordinal: e.ordinal, From: known.fill, To: e.limit}, nil) // the drawer is no longer filled
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
