package cosmos

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
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
	for _, cab := range x.cabinets {
		size += 256 + 80*len(cab.open)
		for _, s := range cab.sealed {
			size += 64 + len(s.filter)
		}
	}
	return size
}

// refresh reads what h says is there and the index does not know yet.
func (x *index) refresh(ctx context.Context, c *call, h *head) error {
	var behind []*cabinetIndex
	for name, last := range h.Cabinets {
		cab := x.cabinets[name]
		if cab == nil {
			cabinet, err := cabinetOf(x.recipient, name)
			if err != nil {
				return err
			}
			cab = &cabinetIndex{cabinet: cabinet}
			x.cabinets[name] = cab
		}
		cab.dropBelow(h.Retention[name].Floor)
		if !cab.knows(last) {
			behind = append(behind, cab)
		}
	}
	g, ctx := errgroup.WithContext(ctx) // once nothing is left that ends this before them
	g.SetLimit(drawersPerBundle)
	for _, cab := range behind {
		g.Go(func() error { return cab.catchUp(ctx, c, h.Cabinets[nameOf(cab.cabinet)]) })
	}
	return g.Wait()
}

// next is the ordinal behind the sealed drawers.
func (cab *cabinetIndex) next() int { return cab.gone + len(cab.sealed) + 1 }

// dropBelow forgets the drawers with an ordinal below floor: their pages may be
// gone at any time.
func (cab *cabinetIndex) dropBelow(floor int) {
	if floor <= cab.gone+1 {
		return
	}
	if floor > cab.next() {
		cab.drawer, cab.fill, cab.open = "", 0, nil
	}
	cab.sealed = cab.sealed[min(floor-1-cab.gone, len(cab.sealed)):]
	cab.gone = floor - 1
}

// knows reports whether there is nothing in the cabinet that cab has not seen.
func (cab *cabinetIndex) knows(last received) bool {
	return last.Ordinal < cab.next() ||
		last.Ordinal == cab.next() && last.Drawer != "" && last.Drawer == cab.drawer && last.Fill <= cab.fill
}

func (cab *cabinetIndex) catchUp(ctx context.Context, c *call, last received) error {
	extents, err := c.extents(ctx, cab.cabinet, last, cab.next(), 0)
	if err != nil {
		return err
	}
	newest, err := last.decodeTail(cab.cabinet)
	if err != nil {
		return domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cab.cabinet), err)
	}
	if len(extents) != last.Ordinal-cab.next()+1 {
		return client.ErrNotYetVisible // a stale read: not every drawer was seen
	}
	if len(extents) > 0 && cab.drawer != "" && extents[0].drawer == cab.drawer { // first, so that what is read behind it can be kept
		if err := cab.readTo(ctx, c, extents[0], newest); err != nil {
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
				filters[i], err = c.readFilter(ctx, cab.cabinet, e)
				if err != nil {
					failed.Store(true)
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		cab.keep(extents, filters)
		return err
	}
	for i, e := range extents {
		if e.sealed {
			cab.seal(e.drawer, e.limit, filters[i])
		} else if err := cab.readTo(ctx, c, e, newest); err != nil {
			return err
		}
	}
	return nil
}

// keep takes in the filters that were read before one could not be, up to that one, so
// that the next attempt goes on there. Of many drawers none may ever be read in one go.
func (cab *cabinetIndex) keep(extents []extent, filters []filter) {
	for i, e := range extents {
		isEmpty := e.sealed && e.limit == 0 // of which a rollback leaves some
		if filters[i] == nil && !isEmpty {
			return
		}
		cab.seal(e.drawer, e.limit, filters[i])
	}
}

// readTo adds the events of e that are not known yet, and seals it if nothing more
// will come into it.
func (cab *cabinetIndex) readTo(ctx context.Context, c *call, e extent, newest *tail) error {
	if cab.drawer != e.drawer {
		cab.drawer, cab.fill, cab.open = e.drawer, 0, make(map[domain.EventID]domain.Digest)
	}
	if cab.fill < e.limit {
		if err := cab.readOn(ctx, c, e, newest); err != nil {
			return err
		}
	}
	if e.sealed {
		cab.seal(e.drawer, e.limit, filterOf(cab.open))
	}
	return nil
}

func (cab *cabinetIndex) readOn(ctx context.Context, c *call, e extent, newest *tail) error {
	read := c.readDrawer(cab.cabinet, slotRange{Drawer: e.drawer, Ordinal: e.ordinal, From: cab.fill, To: e.limit}, newest)
	for cab.fill < e.limit {
		events, err := read.next(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			cab.open[events[i].ID] = events[i].digest
		}
		cab.fill += len(events)
	}
	return nil
}

func (cab *cabinetIndex) seal(drawer string, count int, f filter) {
	cab.sealed = append(cab.sealed, sealedDrawer{drawer, count, f})
	cab.drawer, cab.fill, cab.open = "", 0, nil
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
func (c *call) readFilter(ctx context.Context, cabinet domain.CabinetKey, e extent) (filter, error) {
	var doc filterDoc
	_, err := c.Read(ctx, c.r.db.cabinets, e.drawer, filterID, &doc)
	if err == nil && doc.Count == e.limit && len(doc.Filter) == len(newFilter(e.limit)) {
		return doc.Filter, nil
	}
	if err != nil && !client.IsNotFound(err) {
		return nil, err
	}
	ids, rerr := c.readIDs(ctx, cabinet, slotRange{Drawer: e.drawer, Ordinal: e.ordinal, To: e.limit})
	if rerr != nil {
		return nil, rerr
	}
	f := filterOf(ids)
	if client.IsNotFound(err) {
		c.r.hints.leaveFilter(cabinet.Recipient, e.drawer, e.limit, f)
	}
	return f, nil
}

// readIDs reads the ids of a run of slots.
func (c *call) readIDs(ctx context.Context, cabinet domain.CabinetKey, s slotRange) (map[domain.EventID]domain.Digest, error) {
	ids := make(map[domain.EventID]domain.Digest, s.To-s.From)
	read := c.readDrawer(cabinet, s, nil) // of a drawer that the head has left
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
func (x *index) lookup(ctx context.Context, c *call, id domain.EventID) (domain.Digest, bool, error) {
	return x.find(id, func(cab *cabinetIndex, at int) (map[domain.EventID]domain.Digest, error) {
		return x.load(ctx, c, cab, at)
	})
}

// find looks for an event in the open drawers, and has those of the sealed ones
// loaded that may hold it.
func (x *index) find(id domain.EventID, load func(cab *cabinetIndex, at int) (map[domain.EventID]domain.Digest, error)) (domain.Digest, bool, error) {
	for _, cab := range x.cabinets {
		if digest, ok := cab.open[id]; ok {
			return digest, true, nil
		}
	}
	hash := hashOf(id)
	for _, cab := range x.cabinets {
		for at := range cab.sealed {
			if !cab.sealed[at].filter.mayHoldHash(hash) {
				continue
			}
			ids, err := load(cab, at)
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
func (x *index) load(ctx context.Context, c *call, cab *cabinetIndex, at int) (map[domain.EventID]domain.Digest, error) {
	s := &cab.sealed[at]
	if ids, ok := x.loaded[s.id]; ok {
		return ids, nil
	}
	ids, err := c.readIDs(ctx, cab.cabinet, slotRange{Drawer: s.id, Ordinal: cab.gone + at + 1, To: s.count})
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
		cab := x.cabinets[part.Cabinet]
		if cab == nil {
			cabinet, err := cabinetOf(x.recipient, part.Cabinet)
			if err != nil {
				continue // cannot be: the name was made from a cabinet
			}
			cab = &cabinetIndex{cabinet: cabinet}
			x.cabinets[part.Cabinet] = cab
		}
		if part.New {
			if part.Ordinal == cab.next()+1 && cab.drawer != "" {
				f := filterOf(cab.open)
				r.hints.leaveSealed(cab.cabinet, cab.drawer, cab.fill, f)
				cab.seal(cab.drawer, cab.fill, f)
			}
			if part.Ordinal != cab.next() {
				continue // something lies between: refresh will read it
			}
			cab.drawer, cab.fill, cab.open = part.Drawer, 0, make(map[domain.EventID]domain.Digest, part.Count)
		}
		if cab.drawer != part.Drawer || cab.fill != part.Slot {
			continue
		}
		for _, e := range p.events[i] {
			cab.open[e.ID] = e.digest
		}
		cab.fill = part.end()
	}
}
