package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.Finder = (*Store)(nil)

// A bundleRecord contains a bundle and its state.
type bundleRecord struct {
	bundle *domain.Bundle // shared with the gate in which the bundle is or was open
	repository.FoundBundle
}

// setState records the state of a bundle.
func (s *Store) setState(r *storedRecipient, b *domain.Bundle, state repository.BundleState) {
	record := &bundleRecord{bundle: b}
	record.State = state
	if state != repository.BundleOpen {
		record.Closed = s.opts.Clock()
	}
	r.bundles[b.ID] = record
}

// toFoundBundle returns the bundle of a record as a search result.
func (r *storedRecipient) toFoundBundle(record *bundleRecord) repository.FoundBundle {
	f := record.FoundBundle
	f.Bundle, f.Frozen = *cloneBundle(record.bundle), r.frozen
	return f
}

// FindBundle implements [repository.Finder].
func (s *Store) FindBundle(ctx context.Context, id domain.BundleID, of domain.ActorID, limit int) (repository.BundleSearch, error) {
	if err := ctx.Err(); err != nil {
		return repository.BundleSearch{}, fmt.Errorf("find bundle: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []repository.FoundBundle
	for _, name := range s.sortedRecipients("") {
		r := s.recipients[name]
		if record := r.bundles[id]; record != nil && (of.IsZero() || of == name) {
			found = append(found, r.toFoundBundle(record))
		}
	}
	n := min(len(found), limit)
	return repository.BundleSearch{Found: found[:n], HasMore: n < len(found)}, nil
}

// FindEvent implements [repository.Finder]. The position of a search of all mailboxes is the name of
// the last recipient.
func (s *Store) FindEvent(ctx context.Context, q repository.EventQuery) (repository.EventSearch, error) {
	if err := ctx.Err(); err != nil {
		return repository.EventSearch{}, fmt.Errorf("find event: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var search repository.EventSearch
	if !q.Recipient.IsZero() {
		if r := s.recipients[q.Recipient]; r != nil && len(r.cabinets) > 0 {
			search.Mailboxes = 1
			s.addFound(r, &q, &search)
		}
		return search, nil
	}
	began := s.opts.Clock()
	for _, name := range s.sortedRecipients(q.After) {
		isOver := q.Limit > 0 && len(search.Found)+len(search.Saves)+len(search.Bundles) >= q.Limit || q.Time > 0 && s.opts.Clock().Sub(began) >= q.Time
		if isOver && search.Mailboxes > 0 {
			return search, nil
		}
		search.Mailboxes++
		s.addFound(s.recipients[name], &q, &search)
		search.Next = name.String()
	}
	search.Next = ""
	return search, nil
}

// sortedRecipients returns the recipients whose names are greater than after, in order. It omits
// recipients that never had an event.
func (s *Store) sortedRecipients(after string) []domain.ActorID {
	var names []domain.ActorID
	for name, r := range s.recipients {
		if len(r.cabinets) > 0 && name.String() > after {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b domain.ActorID) int { return cmp.Compare(a.String(), b.String()) })
	return names
}

// addFound adds the results from the mailbox of a recipient to search.
func (s *Store) addFound(r *storedRecipient, q *repository.EventQuery, search *repository.EventSearch) {
	isTrace := q.Trace != domain.TraceID{}
	for _, c := range r.cabinets {
		if !q.Origin.IsZero() && c.key.Origin != q.Origin {
			continue
		}
		if isTrace {
			search.Saves = append(search.Saves, c.findSaves(q.Trace)...)
			continue
		}
		for i := range c.events {
			if e := &c.events[i]; e.ID == q.ID && !c.lost[e.Sequence] {
				search.Found = append(search.Found, r.toFoundEvent(c, i))
			}
		}
	}
	for _, record := range r.bundles {
		isOfOrigin := q.Origin.IsZero() || record.bundle.Cabinet.Origin == q.Origin
		if isTrace && isOfOrigin && record.bundle.Peeked.TraceID == q.Trace {
			search.Bundles = append(search.Bundles, r.toFoundBundle(record))
		}
	}
}

// findSaves returns the ranges of events that were saved under spans of a trace.
func (c *storedCabinet) findSaves(trace domain.TraceID) []repository.FoundSave {
	var found []repository.FoundSave
	last := -1 // index of the last event that was added to a result
	for i := range c.events {
		e := &c.events[i]
		span := c.saves[e.Sequence]
		if span.TraceID != trace || c.lost[e.Sequence] {
			continue
		}
		if n := len(found); n == 0 || last != i-1 || found[n-1].Span != span {
			found = append(found, repository.FoundSave{Span: span, Cabinet: c.key, Group: c.group})
		}
		found[len(found)-1].Add(e)
		last = i
	}
	return found
}

// toFoundEvent returns the event with an index in a cabinet as a search result.
func (r *storedRecipient) toFoundEvent(c *storedCabinet, index int) repository.FoundEvent {
	e := &c.events[index]
	f := repository.FoundEvent{
		StoredEvent: *e, Group: c.group, Save: c.saves[e.Sequence], IsAcknowledged: index < c.acknowledged,
		Before: max(int64(index-c.acknowledged), 0), Mailbox: repository.MailboxState{Frozen: r.frozen},
	}
	for _, record := range r.bundles {
		if b := record.bundle; b.Cabinet == c.key && b.First <= e.Sequence && e.Sequence <= b.Last {
			f.Bundles = append(f.Bundles, r.toFoundBundle(record))
		}
	}
	slices.SortFunc(f.Bundles, func(a, b repository.FoundBundle) int { return a.Opened.Compare(b.Opened) })
	if f.IsAcknowledged {
		return f
	}
	if open := r.ensureGate(c.group).open; open != nil {
		f.Mailbox.Open = cloneBundle(open)
		return f
	}
	first := c.waitingEvents()[0].Sequence
	if c.lost[first] {
		f.Mailbox.Lost = fmt.Sprintf("event %d is lost", first)
		return f
	}
	for _, other := range r.cabinets {
		if other == c || other.group != c.group || len(other.waitingEvents()) == 0 {
			continue
		}
		if n := other.waitingEvents()[0].Sequence; n < first && !other.lost[n] {
			first, f.FirstWaiting = n, &repository.FirstWaiting{Cabinet: other.key, Sequence: n}
		}
	}
	return f
}
