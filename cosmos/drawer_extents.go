package cosmos

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// An extent is the part of a drawer that may be trusted: the slots below limit hold committed events.
type extent struct {
	drawer  string
	ordinal int
	limit   int
	sealed  bool
	weight  domain.Weight // of the whole drawer, an estimate; 0: unknown
	count   int           // number of events whose weight is weight
}

// slotBehind returns the first slot of the drawer that is after a position in its cabinet. The drawer
// must not be before that of the position.
func (e extent) slotBehind(at position) int {
	if e.ordinal == at.Ordinal {
		return at.Slot
	}
	return 0
}

// readExtents returns the certain extents of the drawers of a cabinet, in order and without a gap from
// ordinal from on. last is the state of the cabinet in a head. It stops at the first drawer that a
// stale read does not show, and after limit drawers that hold events if limit is not 0.
//
// Certain are: of the drawer that the head names, the fill that the head states, whatever the document
// of the drawer states. That is taken from the head, because the drawer may have no document yet. Of a
// drawer with a smaller ordinal, all its events once it is sealed; readExtents seals one that is not. A
// count proves nothing: it may belong to a Save that will be rolled back.
func (c *call) readExtents(ctx context.Context, cabinet domain.CabinetKey, last received, from, limit int) ([]extent, error) {
	var found []extent
	until := last.Ordinal + 1 // the ordinal after the drawers that are looked up
	if last.Drawer != "" {
		until = last.Ordinal
	}
	filled := 0
	if from < until {
		var err error
		if found, filled, err = c.leftExtents(ctx, cabinet, from, until, limit); err != nil {
			return nil, err
		}
	}
	if from+len(found) == last.Ordinal && last.Drawer != "" && (limit == 0 || filled < limit) {
		found = append(found, extent{drawer: last.Drawer, ordinal: last.Ordinal, limit: last.Fill})
	}
	return found, nil
}

// hasLeft reports whether the drawer with an ordinal is before the one that the head fills.
func (c received) hasLeft(ordinal int) bool {
	return ordinal < c.Ordinal || ordinal == c.Ordinal && c.Drawer == ""
}

// extentsOfRun returns extents from ordinal from on, as many as a bundle after at may need. A sealed
// drawer never changes, so a node that has read enough of them does not read them again: a Peek costs
// the same whatever the number of drawers with waiting events.
func (c *call) extentsOfRun(ctx context.Context, cabinet domain.CabinetKey, last received, from int, at position) ([]extent, error) {
	var found []extent
	if !c.uncached.Load() {
		found = c.r.known.sealedExtents(cabinet, from)
	}
	if n := len(found); n > 0 && !last.hasLeft(found[n-1].ordinal) { // a stale head, or a store that has lost writes
		found = nil
	}
	waiting := 0 // drawers with unacknowledged events
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

// leftExtents returns the certain extents of the drawers with ordinals from from to until, none of
// which the head names, and the number of those that hold events.
func (c *call) leftExtents(ctx context.Context, cabinet domain.CabinetKey, from, until, limit int) (found []extent, filled int, err error) {
	key := cabinetKey(cabinet)
	q := c.Query(c.r.db.cabinets, key, "SELECT * FROM c WHERE c.ordinal >= @from ORDER BY c.ordinal",
		azcosmos.QueryParameter{Name: "@from", Value: from})
	size := 1000
	if limit > 0 {
		size = limit // each drawer that is loaded costs request units
	}
	for !q.IsDone() {
		items, err := q.Next(ctx, size)
		if err != nil {
			return nil, 0, err
		}
		size = min(2*size, 1000) // rollbacks leave empty drawers
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
		// A crash after this write leaves the drawer sealed. It is not the drawer that the head
		// names, so no later Save fills it.
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

// A drawerReader reads a range of slots, one result page at a time. It begins with a few pages and
// doubles their number, so that it never reads much more than is used.
type drawerReader struct {
	call    *call
	cabinet domain.CabinetKey
	slots   slotRange
	tail    *tail // the tail in the head that the slots were taken from, if it is of this drawer; or nil
	at      int   // the next slot
	size    int   // number of pages in the next result page
	patient bool  // wait for missing slots: they belong to a bundle, so they must exist
	query   *client.Query
	saves   *pageSaves // collects the spans of the pages; nil if they are not needed

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

// pagesEnd returns the first slot that the reader does not take from pages.
func (d *drawerReader) pagesEnd() int {
	if d.tail == nil {
		return d.slots.To
	}
	return min(d.slots.To, d.tail.paged)
}

// isDone reports whether the whole range has been read.
func (d *drawerReader) isDone() bool { return d.at >= d.slots.To }

// readNext returns the next events, at least one. For slots that are missing because a read was stale
// it returns client.ErrNotYetVisible. If they stay missing, a patient reader treats them as gone.
func (d *drawerReader) readNext(ctx context.Context) ([]storedEvent, error) {
	if d.isDone() { // a damaged bundle may name such slots
		return nil, domain.Errorf(domain.Damaged, "drawer %s: the slots %d to %d are not a range", d.slots.Drawer, d.slots.From, d.slots.To)
	}
	for missing := 1; ; missing++ {
		events, err := d.resultPage(ctx)
		if !d.patient || !errors.Is(err, client.ErrNotYetVisible) {
			return events, err
		}
		if !d.call.Pause(ctx, 0) {
			if missing < client.MaxMissing {
				return nil, domain.Errorf(domain.Busy, "gave up on slot %d of drawer %s: %w", d.at, d.slots.Drawer, err)
			}
			return nil, domain.Errorf(domain.Damaged, "drawer %s lacks slot %d of the slots %d to %d that it holds", d.slots.Drawer, d.at, d.slots.From, d.slots.To)
		}
		d.query = nil
	}
}

// resultPage returns the events of the next result page that has any.
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
					return events, nil // return the events before the gap
				}
				return nil, client.ErrNotYetVisible
			}
			if p.Until <= d.at || d.at >= d.pagesEnd() {
				continue // a page that a rolled-back Save has left may begin where another one ends
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

// decodePages decodes the pages that a query returned. count is the limit for the events that are still
// to be read.
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
