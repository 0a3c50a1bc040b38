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

// A scan reads a whole cabinet and compares it with the head and the gate.
type scan struct {
	l       *recipientCheck
	name    cabinetName
	cabinet domain.CabinetKey
	last    cabinetState
	tail    *tail // nil if all events are in pages
	floor   int
	at      position
	bundle  *bundleDoc // the open bundle, or nil
	idsOnly bool       // only the ids are checked, because an earlier pass has checked the rest

	seen []*drawerSeen // drawers that hold visible events, in order
}

// A drawerSeen collects the results of reading a drawer.
type drawerSeen struct {
	id      string
	ordinal int
	limit   int // number of slots that hold visible events
	paged   int // number of visible slots in pages; the remaining ones are in the tail
	sealed  bool

	events  int // read
	first   domain.Sequence
	last    domain.Sequence
	next    domain.Sequence // number of the first unacknowledged event, or 0
	waiting int64           // number of unacknowledged events
	bundled int64           // number of unacknowledged events up to the end of the open bundle
}

func (s *scan) locateDrawer(d *drawerSeen) string {
	return fmt.Sprintf("drawer %d (%s) of %s", d.ordinal, d.id, s.name)
}

func (s *scan) checkCabinet(ctx context.Context) error {
	var err error
	if s.tail, err = s.last.decodeTail(s.cabinet); err != nil {
		return domain.Errorf(domain.Damaged, "cabinet %s: %w", s.name, err)
	}
	if err := s.checkDrawers(ctx); err != nil {
		return err
	}
	if err := s.readAll(ctx); err != nil {
		return err
	}
	s.checkTotals()
	return nil
}

// readAll reads the drawers, several of them concurrently.
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
			return s.readDrawer(ctx, d)
		})
	}
	return g.Wait()
}

// checkDrawers checks the documents of the drawers and determines which slots are visible.
func (s *scan) checkDrawers(ctx context.Context) error {
	key := cabinetKey(s.cabinet)
	found, err := client.All[drawer](ctx, s.l.beginCall().Query(s.l.c.r.db.cabinets, key,
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
			s.addMissing(next, d.Ordinal)
		}
		next = d.Ordinal + 1
		s.checkDrawer(key, d, seen)
		if seen.limit > 0 {
			s.seen = append(s.seen, seen)
		}
	}
	if next <= s.last.Ordinal {
		s.addMissing(next, s.last.Ordinal+1)
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.l.drawers += int64(len(found))
	return nil
}

func (s *scan) addMissing(from, to int) {
	s.l.addFinding("H8", drawerMissing, fmt.Sprintf("drawers %d to %d of %s", from, to-1, s.name), nil, "these drawers are missing, but the head states drawers up to %d", s.last.Ordinal)
}

func (s *scan) checkDrawer(key string, d *drawer, seen *drawerSeen) {
	if d.ID == s.last.Drawer {
		seen.limit, seen.paged = s.last.Fill, s.last.inPages()
		switch {
		case d.isAhead(s.last) && d.Count >= s.last.Fill && s.l.h.Intent == nil:
			s.reportAhead(seen, "it has %d events, and the head says that it has %d and is being filled; %s", d.Count, s.last.Fill, whatToDoAhead)
		case d.Count < seen.paged || d.Sealed && d.Count != s.last.Fill:
			s.l.addFinding("H8", drawerShort, s.locateDrawer(seen), nil, "the head states %d events in the drawer, %d of them in pages, but the drawer counts %d", s.last.Fill, seen.paged, d.Count)
		}
	} else if isClosed := s.last.Drawer == "" && d.Ordinal == s.last.Ordinal; !d.Sealed && !isClosed { // a drawer that a sweep has closed is sealed by its next reader
		s.l.addFinding("H8", drawerUnsealed, s.locateDrawer(seen), func(ctx context.Context, c *call) error {
			_, err := c.sealDrawer(ctx, key, d.ID)
			return err
		}, "the head has moved to a later drawer, but this drawer is not sealed")
	}
	position := 0
	switch {
	case d.Ordinal < s.at.Ordinal:
		position = seen.limit
	case d.Ordinal == s.at.Ordinal:
		position = s.at.Slot
	}
	if d.Position > position { // after a Dequeue of events in a tail, the position may be too low, which only costs a read
		s.l.addFinding("H9", positionWrong, s.locateDrawer(seen), func(ctx context.Context, c *call) error {
			ops := client.NewPatch(drawerDocument, fmt.Sprintf("c.position = %d", d.Position))
			ops.AppendSet("/position", position)
			return c.Patch(ctx, c.r.db.cabinets, key, d.ID, ops, &drawer{})
		}, "the position of the drawer states %d acknowledged slots, but the gate states %d", d.Position, position)
	}
}

// checkFront compares the front of the cabinet with the first waiting event, if the front is just after
// the gate.
func (s *scan) checkFront() {
	stated := s.last.frontBehind(s.at)
	if stated == 0 {
		return
	}
	at := slices.IndexFunc(s.seen, func(d *drawerSeen) bool { return d.next > 0 })
	if at < 0 || s.seen[at].next == stated {
		return
	}
	s.l.addFinding("H4", headWrong, "front of "+s.name, func(ctx context.Context, c *call) error {
		return c.dropFront(ctx, s.l.recipient, nameOf(s.cabinet))
	}, "the head states that the first waiting event has number %d, but it has number %d", stated, s.seen[at].next)
}

// checkTotals compares the sums over all drawers with the head and the gate.
func (s *scan) checkTotals() {
	var last domain.Sequence
	var waiting, bundled int64
	for _, d := range s.seen {
		if d.events == 0 {
			continue
		}
		if d.first <= last {
			s.l.addFinding("H3", sequenceWrong, s.locateDrawer(d), nil, "the drawer begins with number %d, but the previous drawer ends with number %d", d.first, last)
		}
		last = d.last
		waiting += d.waiting
		bundled += d.bundled
	}
	s.checkFront()
	isInFront := s.at.isInFront(s.last) // a gate in front of the head is reported separately
	// A head that was raised above a gate counts lost events, which are in no drawer.
	isRaised := s.last.Drawer == "" && last < s.last.Sequence && s.at.Sequence >= s.last.Sequence
	if len(s.seen) > 0 && last != s.last.Sequence && !isInFront && !isRaised {
		s.l.addFinding("H1", countWrong, fmt.Sprintf("cabinet %s, number %d", s.name, s.last.Sequence), nil, "the last event has number %d, but the head states number %d", last, s.last.Sequence)
	}
	if backlog := s.last.Total - s.at.Total; waiting != backlog && !isInFront {
		s.l.addFinding("H1", countWrong, fmt.Sprintf("backlog of %s, events %d to %d", s.name, s.at.Total+1, s.last.Total), nil, "%d events wait, but %d of the %d received were acknowledged", waiting, s.at.Total, s.last.Total)
	}
	if b := s.bundle; b != nil && bundled != int64(b.Count) {
		s.l.addFinding("H6", bundleWrong, "bundle "+b.ID, nil, "the bundle has %d events, but %d events wait up to its last one, number %d", b.Count, bundled, b.Last)
	}
}
