package cosmos

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// An index knows which events a recipient has received. The pages are the
// record; the index is what this process remembers of it: the ids in the last
// drawer of each cabinet, and for each sealed drawer a filter. It holds
// committed events only and these stay committed, so it is never wrong about an
// id that it knows; refresh makes it complete as of a head.
//
// It belongs to whoever leads the writer.
type index struct {
	recipient domain.ActorID
	cabinets  map[cabinetName]*cabinetIndex
	loaded    map[string]map[domain.EventID]domain.Digest // sealed drawers read for this Save
}

// A cabinetIndex knows the sealed drawers from the ordinal gone+1 on, and fill
// slots of the one behind them if it has a name. Those up to gone are no longer
// retained.
type cabinetIndex struct {
	cabinet domain.CabinetKey
	gone    int
	sealed  []sealedDrawer
	drawer  string
	fill    int
	open    map[domain.EventID]domain.Digest
}

type sealedDrawer struct {
	id     string
	count  int
	filter filter
}

func newIndex(recipient domain.ActorID) *index {
	return &index{recipient: recipient, cabinets: make(map[cabinetName]*cabinetIndex)}
}

// size estimates the memory that the index takes, in bytes.
func (x *index) size() int {
	size := 2500 // the writer with its head, for one cabinet
	for _, c := range x.cabinets {
		size += 256 + 80*len(c.open)
		for _, s := range c.sealed {
			size += 64 + len(s.filter)
		}
	}
	return size
}

// refresh reads what h says is there and the index does not know yet.
func (x *index) refresh(ctx context.Context, o *operation, h *head) error {
	var behind []*cabinetIndex
	for name, last := range h.Cabinets {
		c := x.cabinets[name]
		if c == nil {
			cabinet, err := cabinetOf(x.recipient, name)
			if err != nil {
				return err
			}
			c = &cabinetIndex{cabinet: cabinet}
			x.cabinets[name] = c
		}
		c.dropBelow(h.Retention[name].Floor)
		if !c.knows(last) {
			behind = append(behind, c)
		}
	}
	g, ctx := errgroup.WithContext(ctx) // once nothing is left that ends this before them
	g.SetLimit(drawersPerBundle)
	for _, c := range behind {
		g.Go(func() error { return c.catchUp(ctx, o, h.Cabinets[nameOf(c.cabinet)]) })
	}
	return g.Wait()
}

// next is the ordinal behind the sealed drawers.
func (c *cabinetIndex) next() int { return c.gone + len(c.sealed) + 1 }

// dropBelow forgets the drawers with an ordinal below floor: their pages may be
// gone at any time.
func (c *cabinetIndex) dropBelow(floor int) {
	if floor <= c.gone+1 {
		return
	}
	if floor > c.next() {
		c.drawer, c.fill, c.open = "", 0, nil
	}
	c.sealed = c.sealed[min(floor-1-c.gone, len(c.sealed)):]
	c.gone = floor - 1
}

// knows reports whether there is nothing in the cabinet that c has not seen.
func (c *cabinetIndex) knows(last received) bool {
	return last.Ordinal < c.next() ||
		last.Ordinal == c.next() && last.Drawer != "" && last.Drawer == c.drawer && last.Fill <= c.fill
}

func (c *cabinetIndex) catchUp(ctx context.Context, o *operation, last received) error {
	extents, err := o.extents(ctx, c.cabinet, last, c.next(), 0)
	if err != nil {
		return err
	}
	if len(extents) != last.Ordinal-c.next()+1 {
		return errMissing // a stale read: not every drawer was seen
	}
	if len(extents) > 0 && c.drawer != "" && extents[0].drawer == c.drawer { // first, so that what is read behind it can be kept
		if err := c.readTo(ctx, o, extents[0]); err != nil {
			return err
		}
		extents = extents[1:]
	}
	filters := make([]filter, len(extents))
	var g errgroup.Group // those under way when one fails are not in vain
	var failed atomic.Bool
	g.SetLimit(drawersPerBundle)
	for i, e := range extents {
		if failed.Load() {
			break
		}
		if e.sealed && e.limit > 0 {
			g.Go(func() (err error) {
				filters[i], err = o.readFilter(ctx, c.cabinet, e)
				if err != nil {
					failed.Store(true)
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		c.keep(extents, filters)
		return err
	}
	for i, e := range extents {
		if e.sealed {
			c.seal(e.drawer, e.limit, filters[i])
		} else if err := c.readTo(ctx, o, e); err != nil {
			return err
		}
	}
	return nil
}

// keep takes in the filters that were read before one could not be, up to that one, so
// that the next attempt goes on there. Of many drawers none may ever be read in one go.
func (c *cabinetIndex) keep(extents []extent, filters []filter) {
	for i, e := range extents {
		isEmpty := e.sealed && e.limit == 0 // of which a rollback leaves some
		if filters[i] == nil && !isEmpty {
			return
		}
		c.seal(e.drawer, e.limit, filters[i])
	}
}

// readTo adds the events of e that are not known yet, and seals it if nothing more
// will come into it.
func (c *cabinetIndex) readTo(ctx context.Context, o *operation, e extent) error {
	if c.drawer != e.drawer {
		c.drawer, c.fill, c.open = e.drawer, 0, make(map[domain.EventID]domain.Digest)
	}
	if c.fill < e.limit {
		if err := c.readOn(ctx, o, e); err != nil {
			return err
		}
	}
	if e.sealed {
		c.seal(e.drawer, e.limit, filterOf(c.open))
	}
	return nil
}

func (c *cabinetIndex) readOn(ctx context.Context, o *operation, e extent) error {
	read := o.readDrawer(c.cabinet, slots{Drawer: e.drawer, Ordinal: e.ordinal, From: c.fill, To: e.limit})
	for c.fill < e.limit {
		events, err := read.next(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			c.open[events[i].ID] = events[i].digest
		}
		c.fill += len(events)
	}
	return nil
}

func (c *cabinetIndex) seal(drawer string, count int, f filter) {
	c.sealed = append(c.sealed, sealedDrawer{drawer, count, f})
	c.drawer, c.fill, c.open = "", 0, nil
}

func filterOf(ids map[domain.EventID]domain.Digest) filter {
	f := newFilter(len(ids))
	for id := range ids {
		f.add(id)
	}
	return f
}

// readFilter returns the filter of a sealed drawer. If nobody has left one, the
// drawer's pages say what belongs into it, and it is left for the next reader.
func (o *operation) readFilter(ctx context.Context, cabinet domain.CabinetKey, e extent) (filter, error) {
	var doc filterDoc
	_, err := o.read(ctx, o.r.db.cabinets, e.drawer, filterID, &doc)
	if err == nil && doc.Count == e.limit && len(doc.Filter) == len(newFilter(e.limit)) {
		return doc.Filter, nil
	}
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	ids, rerr := o.readIDs(ctx, cabinet, slots{Drawer: e.drawer, Ordinal: e.ordinal, To: e.limit})
	if rerr != nil {
		return nil, rerr
	}
	f := filterOf(ids)
	if isNotFound(err) {
		o.r.hints.leaveFilter(cabinet.Recipient, e.drawer, e.limit, f)
	}
	return f, nil
}

// readIDs reads the ids of a run of slots.
func (o *operation) readIDs(ctx context.Context, cabinet domain.CabinetKey, s slots) (map[domain.EventID]domain.Digest, error) {
	ids := make(map[domain.EventID]domain.Digest, s.To-s.From)
	read := o.readDrawer(cabinet, s)
	for !read.done() {
		events, err := read.next(ctx)
		if err != nil {
			return nil, err
		}
		for i := range events {
			ids[events[i].ID] = events[i].digest
		}
	}
	return ids, nil
}

// errNotRecalled reports that only a read can tell.
var errNotRecalled = errors.New("the event may be in a drawer that is not in memory")

// recall is a lookup that reads nothing.
func (x *index) recall(id domain.EventID) (domain.Digest, bool, error) {
	return x.find(id, func(*cabinetIndex, int) (map[domain.EventID]domain.Digest, error) { return nil, errNotRecalled })
}

// lookup is a lookup that reads the drawers that may hold the event.
func (x *index) lookup(ctx context.Context, o *operation, id domain.EventID) (domain.Digest, bool, error) {
	return x.find(id, func(c *cabinetIndex, at int) (map[domain.EventID]domain.Digest, error) { return x.load(ctx, o, c, at) })
}

// find looks for an event in the open drawers, and has those of the sealed ones
// loaded that may hold it.
func (x *index) find(id domain.EventID, load func(c *cabinetIndex, at int) (map[domain.EventID]domain.Digest, error)) (domain.Digest, bool, error) {
	for _, c := range x.cabinets {
		if digest, ok := c.open[id]; ok {
			return digest, true, nil
		}
	}
	hash := hashOf(id)
	for _, c := range x.cabinets {
		for at := range c.sealed {
			if !c.sealed[at].filter.mayHoldHash(hash) {
				continue
			}
			ids, err := load(c, at)
			if err != nil {
				return domain.Digest{}, false, err
			}
			if digest, ok := ids[id]; ok {
				return digest, true, nil
			}
		}
	}
	return domain.Digest{}, false, nil
}

// load reads a sealed drawer, once for a Save.
func (x *index) load(ctx context.Context, o *operation, c *cabinetIndex, at int) (map[domain.EventID]domain.Digest, error) {
	s := &c.sealed[at]
	if ids, ok := x.loaded[s.id]; ok {
		return ids, nil
	}
	ids, err := o.readIDs(ctx, c.cabinet, slots{Drawer: s.id, Ordinal: c.gone + at + 1, To: s.count})
	if err != nil {
		return nil, err
	}
	if x.loaded == nil {
		x.loaded = make(map[string]map[domain.EventID]domain.Digest)
	}
	x.loaded[s.id] = ids
	return ids, nil
}

// forget drops what was read for one Save only.
func (x *index) forget() { x.loaded = nil }

// add takes in a plan that has been committed. A drawer that is full has been
// left behind; it is sealed now rather than by the next reader.
func (x *index) add(r *Repository, p *plan) {
	for i := range p.intent.Parts {
		part := &p.intent.Parts[i]
		c := x.cabinets[part.Cabinet]
		if c == nil {
			cabinet, err := cabinetOf(x.recipient, part.Cabinet)
			if err != nil {
				continue // cannot be: the name was made from a cabinet
			}
			c = &cabinetIndex{cabinet: cabinet}
			x.cabinets[part.Cabinet] = c
		}
		if part.New {
			if part.Ordinal == c.next()+1 && c.drawer != "" {
				f := filterOf(c.open)
				r.hints.leaveSealed(c.cabinet, c.drawer, c.fill, f)
				c.seal(c.drawer, c.fill, f)
			}
			if part.Ordinal != c.next() {
				continue // something lies between: refresh will read it
			}
			c.drawer, c.fill, c.open = part.Drawer, 0, make(map[domain.EventID]domain.Digest, part.Count)
		}
		if c.drawer != part.Drawer || c.fill != part.Slot {
			continue
		}
		for _, e := range p.events[i] {
			c.open[e.ID] = e.digest
		}
		c.fill = part.end()
	}
}
