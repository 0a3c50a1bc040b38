package cosmos

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// An extent is the part of a drawer that a reader may trust: the slots below limit hold committed events.
type extent struct {
	drawer  string
	ordinal int
	limit   int
	sealed  bool
	weight  domain.Weight // estimated weight of the first count events of the drawer; 0: unknown
	count   int
}

// slotBehind returns the first slot of the drawer that is after a position in its cabinet. The drawer
// must not be before the drawer of the position.
func (e extent) slotBehind(at position) int {
	if e.ordinal == at.Ordinal {
		return at.Slot
	}
	return 0
}

// readExtents returns the extents of the drawers of a cabinet, with consecutive ordinals that begin at
// from. last is the state of the cabinet in a head. readExtents stops at the first drawer that a stale
// read does not return. If limit is not 0, it also stops after limit drawers with events.
//
// The extent of the drawer that the head names comes from the head. That drawer may have no document yet,
// or its document may state another count. A drawer with a smaller ordinal can be trusted as a whole once
// it is sealed; readExtents seals it if necessary. The count of an unsealed drawer cannot be trusted: it
// may belong to a Save that will be rolled back.
func (c *call) readExtents(ctx context.Context, cabinet domain.CabinetKey, last cabinetState, from, limit int) ([]extent, error) {
	var found []extent
	until := last.Ordinal + 1 // ordinal after the last drawer to query
	if last.Drawer != "" {
		until = last.Ordinal
	}
	filled := 0
	if from < until {
		var err error
		if found, filled, err = c.earlierExtents(ctx, cabinet, from, until, limit); err != nil {
			return nil, err
		}
	}
	if from+len(found) == last.Ordinal && last.Drawer != "" && (limit == 0 || filled < limit) {
		found = append(found, extent{drawer: last.Drawer, ordinal: last.Ordinal, limit: last.Fill})
	}
	return found, nil
}

// isEarlierDrawer reports whether a drawer is before the drawer that is being filled.
func (c cabinetState) isEarlierDrawer(ordinal int) bool {
	return ordinal < c.Ordinal || ordinal == c.Ordinal && c.Drawer == ""
}

// extentsOfRun returns enough extents for a bundle after at, beginning at the ordinal from. A sealed
// drawer never changes, so a node that knows enough sealed drawers reads no documents of drawers: the cost
// of a Peek does not depend on the number of drawers with waiting events.
func (c *call) extentsOfRun(ctx context.Context, cabinet domain.CabinetKey, last cabinetState, from int, at position) ([]extent, error) {
	var found []extent
	if !c.uncached.Load() {
		found = c.r.known.sealedExtents(cabinet, from)
	}
	if n := len(found); n > 0 && !last.isEarlierDrawer(found[n-1].ordinal) { // the head is stale, or the store has lost writes
		found = nil
	}
	waiting := 0 // number of drawers with unacknowledged events
	for _, e := range found {
		if e.slotBehind(at) < e.limit {
			waiting++
		}
	}
	if from+len(found) == last.Ordinal && last.Drawer != "" {
		return append(found, extent{drawer: last.Drawer, ordinal: last.Ordinal, limit: last.Fill}), nil
	}
	if waiting >= drawersPerBundle {
		return found, nil
	}
	found, err := c.readExtents(ctx, cabinet, last, from, drawersPerBundle+1)
	if err == nil {
		c.r.known.rememberSealed(cabinet, found)
	}
	return found, err
}

// earlierExtents returns the extents of the drawers with the ordinals from to until-1, which are before
// the drawer that the head names. filled is the number of these drawers that hold events.
func (c *call) earlierExtents(ctx context.Context, cabinet domain.CabinetKey, from, until, limit int) (found []extent, filled int, err error) {
	key := cabinetKey(cabinet)
	q := c.Query(c.r.db.cabinets, key, "SELECT * FROM c WHERE c.ordinal >= @from ORDER BY c.ordinal",
		azcosmos.QueryParameter{Name: "@from", Value: from})
	size := 1000
	if limit > 0 {
		size = limit // limits the cost, because each loaded drawer costs request units
	}
	for !q.IsDone() {
		items, err := q.Next(ctx, size)
		if err != nil {
			return nil, 0, err
		}
		size = min(2*size, 1000) // rollbacks leave empty drawers, so limit drawers may not suffice
		for _, item := range items {
			var d drawer
			if err := c.Decode(item, key, &d); err != nil {
				return nil, 0, err
			}
			if d.Ordinal != from || d.Ordinal >= until {
				return found, filled, nil
			}
			e, err := c.extentOf(ctx, key, &d)
			if err != nil {
				return nil, 0, err
			}
			found = append(found, e)
			from++
			if e.limit > 0 {
				filled++
			}
			if limit > 0 && filled == limit {
				return found, filled, nil
			}
		}
	}
	return found, filled, nil
}

func (c *call) extentOf(ctx context.Context, key string, d *drawer) (extent, error) {
	e := extent{drawer: d.ID, ordinal: d.Ordinal, weight: d.Weight, count: d.Count}
	if !d.Sealed {
		// A crash after this write leaves the drawer sealed. No later Save fills the drawer, because
		// the head names another one.
		truth, err := c.sealDrawer(ctx, key, d.ID)
		if client.IsRefused(err) {
			return e, client.ErrStale
		}
		if err != nil {
			return e, err
		}
		c.r.metrics.repairs.WithLabelValues(sealRepair).Inc()
		d = truth
	}
	e.sealed, e.limit, e.count = true, d.Count, d.Count
	return e, nil
}

// A drawerReader reads a range of slots, one result page at a time. The first result page has a few drawer
// pages, and each later one twice as many as the one before. So the reader does not read many more pages
// than its caller uses.
type drawerReader struct {
	call    *call
	cabinet domain.CabinetKey
	slots   slotRange
	tail    *tail // tail of this drawer in the caller's head; nil if the drawer has no tail
	at      int   // next slot to read
	size    int   // number of drawer pages in the next result page
	patient bool  // wait for missing slots, which must exist because they belong to a bundle
	query   *client.Query
	saves   *pageSaves // collects the trace spans of the pages; nil if they are not needed

	pagesRead int // number of pages whose events were returned
}

const firstPages = 2

// readDrawer returns a reader of the slots in s. t is the tail of the cabinet, or nil; slots in t are
// read from it.
func (c *call) readDrawer(cabinet domain.CabinetKey, s slotRange, t *tail) *drawerReader {
	d := &drawerReader{call: c, cabinet: cabinet, slots: s, at: s.From, size: firstPages}
	if t != nil && t.drawer == s.Drawer {
		d.tail = t
	}
	return d
}

// pagesEnd returns the slot after the last one that the reader reads from pages.
func (d *drawerReader) pagesEnd() int {
	if d.tail == nil {
		return d.slots.To
	}
	return min(d.slots.To, d.tail.paged)
}

// isDone reports whether the whole range has been read.
func (d *drawerReader) isDone() bool { return d.at >= d.slots.To }

// readNext returns the next events, at least one. If a stale read does not return the next slot, readNext
// returns client.ErrNotYetVisible. A patient reader retries, and fails with Damaged if the slot remains
// missing.
func (d *drawerReader) readNext(ctx context.Context) ([]storedEvent, error) {
	if d.isDone() { // a damaged bundle may have an empty range
		return nil, domain.Errorf(domain.Damaged, "drawer %s: slots %d to %d are an empty range", d.slots.Drawer, d.slots.From, d.slots.To)
	}
	for missing := 1; ; missing++ {
		events, err := d.resultPage(ctx)
		if !d.patient || !errors.Is(err, client.ErrNotYetVisible) {
			return events, err
		}
		if !d.call.Pause(ctx, 0) {
			if missing < client.MaxMissing {
				return nil, domain.Errorf(domain.Busy, "slot %d of drawer %s is not visible yet: %w", d.at, d.slots.Drawer, err)
			}
			return nil, domain.Errorf(domain.Damaged, "drawer %s lacks slot %d; it must have slots %d to %d", d.slots.Drawer, d.at, d.slots.From, d.slots.To)
		}
		d.query = nil
	}
}

// resultPage returns the events of the next result page that contains events of the range.
func (d *drawerReader) resultPage(ctx context.Context) ([]storedEvent, error) {
	if d.at >= d.pagesEnd() {
		events := d.tail.slotEvents(d.at, d.slots.To)
		d.at = d.slots.To
		return events, nil
	}
	if d.query == nil {
		d.query = d.call.Query(d.call.r.db.cabinets, d.slots.Drawer, "SELECT * FROM c WHERE c.until > @from ORDER BY c.until",
			azcosmos.QueryParameter{Name: "@from", Value: d.at})
	}
	var events []storedEvent
	for len(events) == 0 {
		if d.query.IsDone() {
			return nil, client.ErrNotYetVisible
		}
		items, err := d.query.Next(ctx, d.size)
		if err != nil {
			return nil, err
		}
		d.size *= 2
		pages, count, err := d.decodePages(items)
		if err != nil {
			return nil, err
		}
		events = make([]storedEvent, 0, count)
		for i := range pages {
			p := &pages[i]
			if p.Slot > d.at {
				if len(events) > 0 {
					return events, nil // the next call reports the gap
				}
				return nil, client.ErrNotYetVisible
			}
			if p.Until <= d.at || d.at >= d.pagesEnd() {
				continue // pages of rolled-back Saves may overlap pages that were read
			}
			d.pagesRead++
			if d.saves != nil && len(p.Saves) > 0 {
				d.saves.add(d.slots.Ordinal, p)
			}
			at, n := d.at, len(events)
			err := p.decodeEvents(d.cabinet, func(slot int, e *storedEvent) bool {
				if slot == d.at && slot < d.pagesEnd() {
					events = append(events, *e)
					d.at++
				}
				return slot+1 < d.pagesEnd()
			})
			if domain.KindOf(err) == domain.NewerFormat {
				d.call.r.newer.Newer(d.cabinet.Recipient.String(), p.ID, err)
				return nil, err
			}
			if err != nil {
				if d.at = at; n > 0 {
					d.query = nil // the next call begins with this page
					return events[:n], nil
				}
				return nil, domain.Errorf(domain.Damaged, "page %s of drawer %s: %w", p.ID, d.slots.Drawer, err)
			}
		}
	}
	return events, nil
}

// decodePages decodes the pages that a query returned. count is an upper limit for the number of events
// that they add to the range.
func (d *drawerReader) decodePages(items [][]byte) (pages []drawerPage, count int, err error) {
	pages = make([]drawerPage, len(items))
	for i, item := range items {
		if err := d.call.Decode(item, d.slots.Drawer, &pages[i]); err != nil {
			if i > 0 && domain.KindOf(err) == domain.Damaged {
				d.query = nil // the next call begins with this page
				return pages[:i], min(count, d.pagesEnd()-d.at), nil
			}
			return nil, 0, err
		}
		count += max(0, min(pages[i].Until-pages[i].Slot, pages[i].maxEvents()))
	}
	return pages, min(count, d.pagesEnd()-d.at), nil
}
