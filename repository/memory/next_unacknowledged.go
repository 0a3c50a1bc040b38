package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// NextUnacknowledged implements [repository.DataAvailable]. If several bundles were opened at the same
// time, it returns the bundle with the smallest First.
func (s *Store) NextUnacknowledged(ctx context.Context, id domain.ActorID, groups []domain.Group) (repository.Next, error) {
	if err := ctx.Err(); err != nil {
		return repository.Next{}, fmt.Errorf("next: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(id)
	if r.frozen {
		return repository.Next{}, repository.ErrFrozen
	}
	var next repository.Next
	var first *storedCabinet
	var lost []*storedCabinet // cabinets whose first event cannot be read
	for _, c := range r.cabinets {
		waiting := c.waitingEvents()
		if len(waiting) == 0 || !slices.Contains(groups, c.group) {
			continue
		}
		next.Waiting += int64(len(waiting))
		if c.lost[waiting[0].Sequence] {
			lost = append(lost, c)
			continue
		}
		if first == nil || waiting[0].Sequence < first.waitingEvents()[0].Sequence {
			first = c
		}
	}
	if len(r.cabinets) == 0 {
		return repository.Next{}, repository.ErrNoMailbox
	}
	if open := r.openLongest(groups); open != nil {
		c := r.cabinets[open.Cabinet]
		next.Open = cloneBundle(open)
		next.Run = s.newRange(r, c, groups, c.waitingEvents()[:open.Count])
		return next, nil
	}
	if s.opts.Ordering == domain.ByRecipient && first != nil && slices.ContainsFunc(lost, func(c *storedCabinet) bool { return c.group == first.group }) {
		first = nil
		for _, c := range r.cabinets {
			isBlocked := slices.ContainsFunc(lost, func(l *storedCabinet) bool { return l.group == c.group })
			if waiting := c.waitingEvents(); !isBlocked && len(waiting) > 0 && slices.Contains(groups, c.group) &&
				(first == nil || waiting[0].Sequence < first.waitingEvents()[0].Sequence) {
				first = c
			}
		}
	}
	if first == nil && len(lost) > 0 {
		return repository.Next{}, domain.Errorf(domain.Damaged, "next: the first event of %v is lost", lost[0].key)
	}
	if first == nil {
		return repository.Next{}, domain.ErrNoData
	}
	next.Run = s.newRange(r, first, groups, s.eventsBeforeOthers(r, first, s.withinSixDrawers(first)))
	return next, nil
}

func (r *storedRecipient) openLongest(groups []domain.Group) *domain.Bundle {
	var longest *domain.Bundle
	for _, group := range groups {
		b := r.ensureGate(group).open
		if b == nil {
			continue
		}
		if longest == nil || cmp.Or(b.Opened.Compare(longest.Opened), cmp.Compare(b.First, longest.First)) < 0 {
			longest = b
		}
	}
	return longest
}

// withinSixDrawers returns the waiting events that a run for a new bundle may have: those in the first
// six drawers, up to a lost event. Event i of a cabinet is in drawer i / capacity.
func (s *Store) withinSixDrawers(c *storedCabinet) []repository.StoredEvent {
	firstDrawer := c.acknowledged / s.opts.DrawerCapacity
	end := (firstDrawer + drawersPerRun) * s.opts.DrawerCapacity
	events := c.events[c.acknowledged:min(end, len(c.events))]
	if lost := slices.IndexFunc(events, func(e repository.StoredEvent) bool { return c.lost[e.Sequence] }); lost >= 0 {
		events = events[:lost]
	}
	return events
}

// eventsBeforeOthers returns the leading events that are older than all waiting events in other cabinets
// of the group. If the ordering is not by recipient, it returns all events. events are the waiting
// events of c. If c has the oldest event of the group, the result is not empty.
func (s *Store) eventsBeforeOthers(r *storedRecipient, c *storedCabinet, events []repository.StoredEvent) []repository.StoredEvent {
	if s.opts.Ordering != domain.ByRecipient {
		return events
	}
	for _, other := range r.cabinets {
		if waiting := other.waitingEvents(); other != c && other.group == c.group && len(waiting) > 0 {
			end, _ := slices.BinarySearchFunc(events, waiting[0].Sequence, func(e repository.StoredEvent, at domain.Sequence) int {
				return cmp.Compare(e.Sequence, at)
			})
			events = events[:end]
		}
	}
	return events
}

func (s *Store) newRange(r *storedRecipient, c *storedCabinet, groups []domain.Group, events []repository.StoredEvent) *eventRange {
	groups = slices.Clone(groups)
	return &eventRange{
		store: s, cabinet: c, generation: r.ensureGate(c.group).generation, events: events,
		groups: groups, waiting: c.waitingEvents(), otherBacklog: r.backlogWithout(c, groups),
	}
}

// An eventRange is a range of events of a cabinet. It needs no lock, because events are only appended.
type eventRange struct {
	store      *Store
	cabinet    *storedCabinet
	generation int // generation of the gate when the run was created
	events     []repository.StoredEvent
	yielded    int // number of events that the longest iteration has yielded

	groups       []domain.Group           // the groups that the caller requested
	waiting      []repository.StoredEvent // the first event of the range, and all later events of the cabinet
	otherBacklog domain.Backlog           // the backlog of all other cabinets of the groups
}

func (r *eventRange) Group() domain.Group { return r.cabinet.group }

func (r *eventRange) Cabinet() domain.CabinetKey { return r.cabinet.key }

// Folder implements [repository.Run].
func (r *eventRange) Folder() string {
	return fmt.Sprintf("cabinets/%s/%s/%x", r.cabinet.key.Recipient, r.cabinet.key.Origin, r.cabinet.key.ContentType.String())
}

// Saves implements [repository.Run].
func (r *eventRange) Saves(n, limit int) []domain.TraceContext {
	var saves []domain.TraceContext
	for i := 0; i < n && len(saves) < limit; i++ {
		if save := r.cabinet.saves[r.events[i].Sequence]; !save.IsZero() && !slices.Contains(saves, save) {
			saves = append(saves, save)
		}
	}
	return saves
}

// BacklogAfter implements [repository.Run].
func (r *eventRange) BacklogAfter(n int) domain.Backlog {
	return backlogOf(r.waiting[n:]).Plus(r.otherBacklog)
}

// Events implements [repository.Run].
func (r *eventRange) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	return func(yield func(repository.StoredEvent, error) bool) {
		for i, e := range r.events {
			if err := ctx.Err(); err != nil {
				yield(repository.StoredEvent{}, fmt.Errorf("read events: %w", err))
				return
			}
			r.yielded = max(r.yielded, i+1)
			if !yield(e, nil) {
				return
			}
		}
	}
}
