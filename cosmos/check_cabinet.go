package cosmos

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A scan reads a whole cabinet and holds it to the head and the gate.
type scan struct {
	l       *look
	name    cabinetName
	cabinet domain.CabinetKey
	last    received
	tail    *tail // nil: all is in pages
	floor   int
	at      position
	bundle  *bundleDoc // that is open, or nil
	idsOnly bool       // all else was looked at before

	seen []*drawerSeen // those that hold visible events, in order
}

// A drawerSeen is what was read of a drawer.
type drawerSeen struct {
	id      string
	ordinal int
	limit   int // slots that hold visible events
	paged   int // slots of them that are in pages; the others are in the tail
	sealed  bool

	events  int // read
	first   domain.Sequence
	last    domain.Sequence
	next    domain.Sequence // of the first that is not acknowledged, 0 if there is none
	waiting int64           // not acknowledged
	bundled int64           // of them, not behind the open bundle
}

func (s *scan) where(d *drawerSeen) string {
	return fmt.Sprintf("drawer %d (%s) of %s", d.ordinal, d.id, s.name)
}

func (s *scan) run(ctx context.Context) error {
	var err error
	if s.tail, err = s.last.decodeTail(s.cabinet); err != nil {
		return domain.Errorf(domain.Damaged, "cabinet %s: %w", s.name, err)
	}
	if err := s.drawers(ctx); err != nil {
		return err
	}
	if err := s.readAll(ctx); err != nil {
		return err
	}
	s.whole()
	return nil
}

// readAll reads the drawers, several at a time.
func (s *scan) readAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, d := range s.seen {
		g.Go(func() error {
			select {
			case s.l.reading <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-s.l.reading }()
			return s.read(ctx, d)
		})
	}
	return g.Wait()
}

// drawers looks at the drawers themselves and decides which slots are visible.
func (s *scan) drawers(ctx context.Context) error {
	key := cabinetKey(s.cabinet)
	found, err := client.All[drawer](ctx, s.l.begin().Query(s.l.c.r.db.cabinets, key,
		"SELECT * FROM c WHERE c.ordinal >= @from ORDER BY c.ordinal", azcosmos.QueryParameter{Name: "@from", Value: s.floor}))
	if err != nil {
		return err
	}
	if s.last.isPageless() && !slices.ContainsFunc(found, func(d *drawer) bool { return d.ID == s.last.Drawer }) {
		found = append(found, &drawer{ID: s.last.Drawer, PartitionKey: key, Ordinal: s.last.Ordinal})
		slices.SortStableFunc(found, func(a, b *drawer) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	}
	next := s.floor
	for _, d := range s.withoutTwins(key, found) {
		seen := &drawerSeen{id: d.ID, ordinal: d.Ordinal, sealed: d.Sealed, limit: d.Count, paged: d.Count}
		switch {
		case d.Ordinal > s.last.Ordinal:
			s.reportBeyondHead(d, seen)
			continue
		case d.Ordinal > next:
			s.missing(next, d.Ordinal)
		}
		next = d.Ordinal + 1
		s.drawer(key, d, seen)
		if seen.limit > 0 {
			s.seen = append(s.seen, seen)
		}
	}
	if next <= s.last.Ordinal {
		s.missing(next, s.last.Ordinal+1)
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.l.drawers += int64(len(found))
	return nil
}

func (s *scan) missing(from, to int) {
	s.l.found("H8", drawerMissing, fmt.Sprintf("drawers %d to %d of %s", from, to-1, s.name), nil, "the head knows drawers up to %d", s.last.Ordinal)
}

func (s *scan) drawer(key string, d *drawer, seen *drawerSeen) {
	if d.ID == s.last.Drawer {
		seen.limit, seen.paged = s.last.Fill, s.last.inPages()
		switch {
		case d.isAhead(s.last) && d.Count >= s.last.Fill && s.l.h.Intent == nil:
			s.reportAhead(seen, "it has %d events, and the head says that it has %d and is being filled; %s", d.Count, s.last.Fill, whatToDoAhead)
		case d.Count < seen.paged || d.Sealed && d.Count != s.last.Fill:
			s.l.found("H8", drawerShort, s.where(seen), nil, "the head says that it holds %d events, %d of them in pages, it says %d", s.last.Fill, seen.paged, d.Count)
		}
	} else if isClosed := s.last.Drawer == "" && d.Ordinal == s.last.Ordinal; !d.Sealed && !isClosed { // one that a sweep has closed is sealed by its next reader
		s.l.found("H8", drawerUnsealed, s.where(seen), func(ctx context.Context, c *call) error {
			_, err := c.seal(ctx, key, d.ID)
			return err
		}, "it was left behind and is not sealed")
	}
	position := 0
	switch {
	case d.Ordinal < s.at.Ordinal:
		position = seen.limit
	case d.Ordinal == s.at.Ordinal:
		position = s.at.Slot
	}
	if d.Position > position { // one that is too low costs a read: a Dequeue of events in a tail leaves it
		s.l.found("H9", positionWrong, s.where(seen), func(ctx context.Context, c *call) error {
			ops := client.NewPatch(drawerDocument, fmt.Sprintf("c.position = %d", d.Position))
			ops.AppendSet("/position", position)
			return c.Patch(ctx, c.r.db.cabinets, key, d.ID, ops, &drawer{})
		}, "its position says that %d slots are acknowledged, the gate says %d", d.Position, position)
	}
}

// pagesAtOnce is how many pages are read in one request: half a megabyte, when
// they are full.
const pagesAtOnce = 8

// read goes through the pages of a drawer.
func (s *scan) read(ctx context.Context, d *drawerSeen) error {
	q := s.l.begin().Query(s.l.c.r.db.cabinets, d.id, "SELECT * FROM c WHERE c.until > @from ORDER BY c.until",
		azcosmos.QueryParameter{Name: "@from", Value: 0})
	slot := 0 // the next one
	hashes := make([]uint64, 0, min(d.limit, maxRound))
	for !q.IsDone() && slot < d.paged {
		items, err := q.Next(ctx, pagesAtOnce)
		if err != nil {
			return err
		}
		for _, item := range items {
			var p page
			if err := q.Decode(item, &p); err != nil {
				return err
			}
			if p.Slot >= d.paged {
				break // of a Save that was not committed, or of a flush that is not in the head yet
			}
			if slot, err = s.page(d, &p, slot, &hashes); err != nil {
				return err
			}
		}
		q.UseCall(s.l.begin().Call) // a budget for each request
	}
	if slot < d.paged && !s.idsOnly {
		s.l.found("H8", pageMissing, fmt.Sprintf("%s, slot %d", s.where(d), slot), nil, "slots %d to %d are not there", slot, d.paged-1)
	}
	s.readTail(d, &hashes)
	if s.idsOnly {
		return nil
	}
	s.l.mu.Lock()
	s.l.events += int64(d.events)
	s.l.mu.Unlock()
	if d.events != d.limit {
		return nil
	}
	return s.filters(ctx, d, hashes)
}

// readTail adds the events of d that are in the tail, and appends the hashes of their ids.
func (s *scan) readTail(d *drawerSeen, hashes *[]uint64) {
	if s.tail == nil || s.tail.drawer != d.id {
		return
	}
	ids := make([]domain.EventID, 0, len(s.tail.events))
	for i := range s.tail.events {
		e := &s.tail.events[i]
		ids = append(ids, e.ID)
		if !s.idsOnly {
			*hashes = append(*hashes, hashOf(e.ID))
			s.event(d, "the tail of "+s.where(d), s.tail.paged+i, e.Sequence)
		}
	}
	s.l.ids.add(ids)
}

// page checks a page and returns the slot behind it. It appends the hashes of the ids. It fails only with NewerFormat.
func (s *scan) page(d *drawerSeen, p *page, slot int, hashes *[]uint64) (int, error) {
	where := fmt.Sprintf("page %s of %s", p.ID, s.where(d))
	if !s.idsOnly {
		switch {
		case p.Slot > slot:
			s.l.found("H8", pageMissing, fmt.Sprintf("%s, slot %d", s.where(d), slot), nil, "slots %d to %d are not there", slot, p.Slot-1)
		case p.Slot < slot:
			s.l.found("H8", pagesOverlap, where, nil, "its slots begin at %d, but there is an event up to slot %d already", p.Slot, slot-1)
		}
	}
	ids := make([]domain.EventID, 0, min(max(p.Until-p.Slot, 0), p.most()))
	err := p.decode(s.cabinet, func(slot int, e *storedEvent) bool {
		if slot >= d.paged {
			return false
		}
		ids = append(ids, e.ID)
		if !s.idsOnly {
			*hashes = append(*hashes, hashOf(e.ID))
			s.event(d, where, slot, e.Sequence)
		}
		return true
	})
	s.l.ids.add(ids)
	if domain.KindOf(err) == domain.NewerFormat {
		return 0, err
	}
	if err != nil && !s.idsOnly {
		s.l.found("H8", pageDamaged, where, nil, "%v", err)
	}
	return p.Until, nil
}

func (s *scan) event(d *drawerSeen, where string, slot int, sequence domain.Sequence) {
	d.events++
	if d.first == 0 {
		d.first = sequence
	}
	if sequence <= d.last || sequence > s.l.h.Watermark {
		s.l.found("H3", sequenceWrong, where, nil, "number %d in slot %d follows number %d; the watermark is %d", sequence, slot, d.last, s.l.h.Watermark)
	}
	d.last = sequence
	waits := sequence > s.at.Sequence
	if waits {
		d.waiting++
		if s.bundle != nil && sequence <= s.bundle.Last {
			d.bundled++
		}
		if d.next == 0 {
			d.next = sequence
		}
	}
	if behind := d.ordinal > s.at.Ordinal || d.ordinal == s.at.Ordinal && slot >= s.at.Slot; behind != waits {
		s.l.found("H7", gateWrong, s.where(d), nil, "the gate stands at drawer %d, slot %d, number %d, but slot %d holds number %d",
			s.at.Ordinal, s.at.Slot, s.at.Sequence, slot, sequence)
	}
	if s.bundle != nil {
		s.inBundle(d, slot, sequence)
	}
}

// inBundle holds the ends of the open bundle to what lies there.
func (s *scan) inBundle(d *drawerSeen, slot int, sequence domain.Sequence) {
	first, last := s.bundle.Ranges[0], s.bundle.Ranges[len(s.bundle.Ranges)-1]
	if d.id == first.Drawer && slot == first.From && sequence != s.bundle.First ||
		d.id == last.Drawer && slot == last.To-1 && sequence != s.bundle.Last {
		s.l.found("H6", bundleWrong, "bundle "+s.bundle.ID, nil, "it says numbers %d to %d, but slot %d of drawer %d holds number %d",
			s.bundle.First, s.bundle.Last, slot, d.ordinal, sequence)
	}
}

// whole holds what was read of all drawers to the head and the gate.
func (s *scan) whole() {
	var last domain.Sequence
	var waiting, bundled int64
	for _, d := range s.seen {
		if d.events == 0 {
			continue
		}
		if d.first <= last {
			s.l.found("H3", sequenceWrong, s.where(d), nil, "it begins with number %d, the drawer before it ends with %d", d.first, last)
		}
		last = d.last
		waiting += d.waiting
		bundled += d.bundled
	}
	isInFront := s.at.isInFront(s.last) // which is reported separately
	// The numbers of a head that was raised above a gate are those of events that are lost.
	isRaised := s.last.Drawer == "" && last < s.last.Sequence && s.at.Sequence >= s.last.Sequence
	if len(s.seen) > 0 && last != s.last.Sequence && !isInFront && !isRaised {
		s.l.found("H1", countWrong, fmt.Sprintf("cabinet %s, number %d", s.name, s.last.Sequence), nil, "its last event is number %d, the head says %d", last, s.last.Sequence)
	}
	if backlog := s.last.Total - s.at.Total; waiting != backlog && !isInFront {
		s.l.found("H1", countWrong, fmt.Sprintf("backlog of %s, events %d to %d", s.name, s.at.Total+1, s.last.Total), nil, "%d events wait, but %d of the %d received were acknowledged", waiting, s.at.Total, s.last.Total)
	}
	if b := s.bundle; b != nil && bundled != int64(b.Count) {
		s.l.found("H6", bundleWrong, "bundle "+b.ID, nil, "it has %d events, but %d wait up to its last one, number %d", b.Count, bundled, b.Last)
	}
}

// find looks for suspects in a drawer and notes where they are.
func (s *scan) find(ctx context.Context, d *drawerSeen, suspects map[uint64]bool, places map[domain.EventID][]string) error {
	q := s.l.begin().Query(s.l.c.r.db.cabinets, d.id, "SELECT * FROM c WHERE c.until > @from ORDER BY c.until",
		azcosmos.QueryParameter{Name: "@from", Value: 0})
	for !q.IsDone() {
		items, err := q.Next(ctx, pagesAtOnce)
		if err != nil {
			return err
		}
		for _, item := range items {
			var p page
			if err := q.Decode(item, &p); err != nil {
				return err
			}
			_ = p.decode(s.cabinet, func(slot int, e *storedEvent) bool { // damage was noted the first time
				if slot < d.paged && suspects[fingerprint(e.ID)] {
					places[e.ID] = append(places[e.ID], fmt.Sprintf("%s, slot %d", s.where(d), slot))
				}
				return slot < d.paged
			})
		}
	}
	if s.tail != nil && s.tail.drawer == d.id {
		for i := range s.tail.events {
			if e := &s.tail.events[i]; suspects[fingerprint(e.ID)] {
				places[e.ID] = append(places[e.ID], fmt.Sprintf("%s, slot %d", s.where(d), s.tail.paged+i))
			}
		}
	}
	return nil
}
