package domain

import (
	"cmp"
	"slices"
)

// A HeldBundle contains deliveries of a cursor that the consumer fetches itself. Until the consumer
// has dequeued the bundle, it does not change, and its deliveries are not called.
type HeldBundle struct {
	ID      string     // id of the request that created the bundle
	Taken   []Position // deliveries without a failed attempt; Standing.Open does not contain them
	Retries []Position // deliveries with failed attempts; the cursor's retries also contain them
}

// The limits of held bundles.
const (
	// MaxHeld is the maximum number of deliveries in a bundle. One settlement can dequeue this
	// many.
	MaxHeld = MaxConcurrency / 2
	// MaxDequeued is the maximum number of ids in Standing.Dequeued.
	MaxDequeued = 4
)

// Len returns the number of deliveries in b, which may be nil.
func (b *HeldBundle) Len() int {
	if b == nil {
		return 0
	}
	return len(b.Taken) + len(b.Retries)
}

// Has reports whether b contains the delivery of the given entry. b may be nil.
func (b *HeldBundle) Has(e EntryID) bool {
	isEntry := func(p Position) bool { return p.EntryID == e }
	return b != nil && (slices.ContainsFunc(b.Taken, isEntry) || slices.ContainsFunc(b.Retries, isEntry))
}

// Positions returns the positions of the deliveries. The highest priority is first; within a
// priority, the lowest number is first.
func (b *HeldBundle) Positions() []Position {
	all := slices.Concat(b.Taken, b.Retries)
	slices.SortFunc(all, func(a, b Position) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
	})
	return all
}

// A PeekRequest requests a bundle. It has no effect if the cursor already has a bundle.
type PeekRequest struct {
	Limit int // maximum number of deliveries in the bundle, up to MaxHeld
	// Entries are the candidates for the bundle, in the order in which they are tried. They match
	// the filter of the receiver. The cursor skips a delivery that is being called or has ended. It
	// also skips all candidates after an entry that was not taken and is missing in the list. A
	// delivery that failed while the caller collected the candidates may be listed twice.
	Entries []Position
}

// HasDequeued reports whether the given bundle is among the last dequeued bundles.
func (s *Standing) HasDequeued(bundle string) bool { return slices.Contains(s.Dequeued, bundle) }

// holdRetries prevents calls of the retries in the bundle.
func (c *Cursor) holdRetries() {
	if b := c.standing.Held; b != nil {
		for _, p := range b.Retries {
			c.retries.remove(p.EntryID, true)
		}
	}
}

// createBundle creates the bundle that r requests, unless all candidates are skipped.
func (c *Cursor) createBundle(id string, r *PeekRequest) {
	b := &HeldBundle{ID: id}
	for _, p := range r.Entries {
		if b.Len() >= min(r.Limit, MaxHeld) {
			break
		}
		if p.Number == c.Position(p.Priority).Number {
			c.Take(p, true)
		}
		if _, called := c.calls[p.EntryID]; called || c.isHeld(p.EntryID) {
			continue
		}
		s := &c.standing
		if i := s.indexOpen(p.EntryID); i >= 0 {
			b.Taken = append(b.Taken, s.Open[i])
			s.Open = slices.Delete(s.Open, i, i+1)
		} else if r := c.retries.get(p.EntryID); r != nil && !b.Has(p.EntryID) {
			b.Retries = append(b.Retries, r.Position)
			c.retries.remove(p.EntryID, true)
		} else {
			continue
		}
		delete(c.postponed, p.EntryID)
		c.settleCaution(p.EntryID)
	}
	if b.Len() > 0 {
		c.standing.Held = b
	}
}

// dequeueBundle ends all deliveries of the bundle.
func (c *Cursor) dequeueBundle() {
	s := &c.standing
	for _, p := range s.Held.Retries {
		c.endDelivery(p.EntryID, nil)
	}
	s.Counters.Delivered += int64(s.Held.Len())
	dequeued := append(slices.Clone(s.Dequeued), s.Held.ID)
	s.Dequeued = dequeued[max(len(dequeued)-MaxDequeued, 0):]
	s.Held = nil
}
