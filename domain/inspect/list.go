package inspect

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// MaxPage is the maximum number of deliveries on a page.
const MaxPage = 100

// defaultPage is the default size of a page.
const defaultPage = 25

// A Query selects deliveries of one subscription.
type Query struct {
	Subscription domain.SubscriptionID
	State        State  // only deliveries in this state; "" selects all
	Size         int    // page size; 0 means 25
	Page         string // Page.Next of the last page; "" requests the first page
}

// A Page contains deliveries in the order of their entries. Any page may have fewer deliveries than requested, or none,
// because the reads for a page are limited and a filter may match few entries.
type Page struct {
	Deliveries []Delivery
	Next       string // Query.Page for the next page; "" if this is the last one

	// Expired contains the last ranges of messages that were removed before the cursor reached them. Only the first
	// page has it, and only if the list is of all deliveries or of dead letters.
	Expired []domain.Expiry
}

// List returns a page of the known deliveries: retries, dead letters, open deliveries, recent successes, and for each
// priority the first waiting ones. They are sorted by entry, so a reader misses a delivery that appears on an earlier
// page later. List fails with NotFound if the reader may not read the subscription, and with Invalid if the query is
// not valid.
func (s *Service) List(ctx context.Context, reader Reader, q Query) (*Page, error) {
	after, err := q.parsePosition()
	if err != nil {
		return nil, err
	}
	n, err := s.readSnapshot(ctx, reader, q.Subscription)
	if err != nil {
		return nil, err
	}
	m := merge{after: after, size: q.Size, found: make(map[domain.EntryID]Delivery)}
	for _, add := range []func(context.Context, *snapshot, *merge, State) error{s.addUnreached, s.addRecent, s.addOpen, s.addRetries, s.addDead} {
		if err := add(ctx, n, &m, q.State); err != nil {
			return nil, err
		}
	}
	page := m.page()
	if q.Page == "" && (q.State == "" || q.State == Dead) {
		page.Expired = n.standing.Expiries
	}
	entries := s.newEntryReader(n)
	for i := range page.Deliveries {
		if d := &page.Deliveries[i]; d.Event == nil {
			if err := entries.addEvent(ctx, d); err != nil {
				return nil, err
			}
		}
	}
	return page, nil
}

// parsePosition returns the position of the last entry before the page.
func (q *Query) parsePosition() (after domain.Position, err error) {
	q.Size = cmp.Or(q.Size, defaultPage)
	if q.Size < 1 || q.Size > MaxPage {
		return after, domain.Errorf(domain.Invalid, "size: want 1 to %d, got %d", MaxPage, q.Size)
	}
	if q.State != "" && !slices.Contains(States, q.State) {
		return after, domain.Errorf(domain.Invalid, "state: want one of %v, got %q", States, domain.Shorten(string(q.State)))
	}
	if q.Page == "" {
		return domain.Position{EntryID: domain.EntryID{Number: -1}}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(q.Page)
	if err == nil {
		if after, err = domain.ParsePosition(string(text)); err != nil {
			after, err = domain.ParsePosition(string(text) + ".0.0") // tokens of an earlier version have no segment and no page
		}
	}
	if err != nil {
		return after, domain.Errorf(domain.Invalid, "page: want the next of the previous page, got %q", domain.Shorten(q.Page))
	}
	return after, nil
}

// A merge combines deliveries from several sources. If two sources contain the same delivery, the later source wins.
// Each source adds at least its first size deliveries, or all that it has, so the first size deliveries of the merge
// are complete.
type merge struct {
	after domain.Position
	size  int
	found map[domain.EntryID]Delivery
	isCut bool             // true if a source may have more deliveries, because it added size
	until *domain.Position // position at which a source stopped reading, or nil
}

func (m *merge) add(d Delivery) {
	if domain.CompareEntries(d.ID.Entry, m.after.EntryID) > 0 {
		m.found[d.ID.Entry] = d
	}
}

func (m *merge) page() *Page {
	p := &Page{Deliveries: make([]Delivery, 0, len(m.found))}
	for _, d := range m.found {
		if m.until == nil || domain.CompareEntries(d.ID.Entry, m.until.EntryID) < 0 {
			p.Deliveries = append(p.Deliveries, d)
		}
	}
	slices.SortFunc(p.Deliveries, func(a, b Delivery) int { return domain.CompareEntries(a.ID.Entry, b.ID.Entry) })
	n := min(m.size, len(p.Deliveries))
	switch {
	case len(p.Deliveries) > m.size, n == m.size && m.isCut:
		p.Deliveries = p.Deliveries[:n]
		p.Next = nextPage(p.Deliveries[n-1].position)
	case m.until != nil:
		last := *m.until
		last.Number--
		p.Next = nextPage(last)
	}
	return p
}

// nextPage returns the token for the page that begins after a position.
func nextPage(after domain.Position) string {
	return base64.RawURLEncoding.EncodeToString([]byte(after.String()))
}

func (s *Service) addRetries(ctx context.Context, n *snapshot, m *merge, state State) error {
	if state != "" && state != Retrying {
		return nil
	}
	return addFailed(ctx, n, m, s.ports.Cursors.Retries)
}

func (s *Service) addDead(ctx context.Context, n *snapshot, m *merge, state State) error {
	if state != "" && state != Dead {
		return nil
	}
	return addFailed(ctx, n, m, s.ports.Cursors.DeadLetters)
}

func addFailed(ctx context.Context, n *snapshot, m *merge, read func(context.Context, domain.CursorID, domain.EntryID, int) ([]domain.Retry, error)) error {
	found, err := read(ctx, n.definition.ID.Cursor(), m.after.EntryID, m.size)
	if err != nil && domain.KindOf(err) != domain.NotFound { // after NotFound: the subscription has no cursor yet
		return err
	}
	for i := range found {
		m.add(n.fromRetry(&found[i]))
	}
	m.isCut = m.isCut || len(found) == m.size
	return nil
}

// addOpen adds open deliveries: a node has begun them, and they have not ended. Their state is Calling, or Waiting
// while the receiver must not be called.
func (s *Service) addOpen(_ context.Context, n *snapshot, m *merge, state State) error {
	for _, at := range n.standing.Open {
		if d := n.fromOpen(at); state == "" || d.State == state {
			m.add(d)
		}
	}
	return nil
}

func (s *Service) addRecent(_ context.Context, n *snapshot, m *merge, state State) error {
	if state != "" && state != Delivered {
		return nil
	}
	for _, e := range n.recentEntries() {
		if d, isDelivered := n.fromRecent(e); isDelivered {
			m.add(d)
		}
	}
	return nil
}

// addUnreached adds deliveries for entries that the cursor has not reached and that match the filter. It reads about
// maxWaitingReads entries at most.
func (s *Service) addUnreached(ctx context.Context, n *snapshot, m *merge, state State) error {
	if state != "" && state != Waiting || n.standing.Stream == (domain.StreamName{}) {
		return nil
	}
	end, err := s.readEnds(ctx, n)
	if err != nil {
		return err
	}
	added, read := 0, 0
	for priority := m.after.Priority; priority < domain.Priorities; priority++ {
		at := n.standing.Position(priority)
		limit := min(end[priority], at.Number+nearEntries)
		if priority == m.after.Priority {
			at = laterPosition(at, m.after)
		}
		for at.Number < limit {
			if read >= maxWaitingReads && at.Number > 0 {
				m.until = &at
				return nil
			}
			found, err := s.ports.Streams.Read(ctx, n.stream, at, int(min(readAhead, limit-at.Number)))
			if err != nil {
				return err
			}
			if len(found.Entries) == 0 {
				break // the entries have expired, or this node cannot see them yet
			}
			read += len(found.Entries)
			for i := range found.Entries {
				e := &found.Entries[i]
				at = e.Position.Next()
				if !n.matches(e) {
					continue
				}
				d := n.newDelivery(e.Position, Waiting)
				d.addEvent(e)
				m.add(d)
				if added++; added == m.size {
					m.isCut = true
					return nil
				}
			}
		}
	}
	return nil
}

// laterPosition returns the later of at and the position behind after. The page of the result is never earlier than the
// page of at, because a forged token could otherwise make the store read from an early page.
func laterPosition(at, after domain.Position) domain.Position {
	if at.Number > after.Number {
		return at
	}
	if cmp.Or(cmp.Compare(after.Segment, at.Segment), cmp.Compare(after.Page, at.Page)) > 0 {
		at.Segment, at.Page = after.Segment, after.Page
	}
	at.Number = after.Number + 1
	return at
}
