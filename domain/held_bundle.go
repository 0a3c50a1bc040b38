package domain

import (
	"cmp"
	"slices"
)

// A HeldBundle has deliveries of a cursor that the consumer fetches itself. Until the consumer has
// dequeued the bundle, the bundle does not change, and its deliveries are not called.
type HeldBundle struct {
	ID      string     // id of the request for the bundle
	Taken   []Position // deliveries that had not failed; Standing.Open does not include them
	Retries []Position // deliveries that had failed; they remain among the retries of the cursor
}

// The limits of held bundles.
const (
	// MaxHeld is the limit for the deliveries of a bundle. It lets one settlement dequeue the
	// bundle.
	MaxHeld = MaxConcurrency / 2
	// MaxDequeued is the limit for the ids of dequeued bundles in a Standing.
	MaxDequeued = 4
)

// Len returns the number of deliveries of b, which may be nil.
func (b *HeldBundle) Len() int {
	if b == nil {
		return 0
	}
	return len(b.Taken) + len(b.Retries)
}

// Has reports whether b, which may be nil, has the delivery of an entry.
func (b *HeldBundle) Has(e EntryID) bool {
	isEntry := func(p Position) bool { return p.EntryID == e }
	return b != nil && (slices.ContainsFunc(b.Taken, isEntry) || slices.ContainsFunc(b.Retries, isEntry))
}

// Positions returns the positions of the deliveries, ordered by priority, highest first, and then
// by number.
func (b *HeldBundle) Positions() []Position {
	all := slices.Concat(b.Taken, b.Retries)
	slices.SortFunc(all, func(a, b Position) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
	})
	return all
}

// A PeekRequest requests a bundle. If the cursor has a bundle already, it has no effect.
type PeekRequest struct {
	Limit int // limit for the deliveries of the bundle, up to MaxHeld
	// Entries are the candidates for the bundle, in the order in which they are tried. The
	// cursor skips deliveries that are being called or have ended. It also skips all entries
	// after an entry that was not taken and is not in the list. All candidates match the filter
	// of the receiver. A delivery that failed while the caller collected the candidates may be
	// in the list twice.
	Entries []Position
}

// HasDequeued reports whether a bundle is one of the last dequeued bundles.
func (s *Standing) HasDequeued(bundle string) bool { return slices.Contains(s.Dequeued, bundle) }

// holdRetries prevents calls of the retries in the bundle.
func (c *Cursor) holdRetries() {
	if b := c.standing.Held; b != nil {
		for _, p := range b.Retries {
			c.retries.remove(p.EntryID, true)
		}
	}
}

// createBundle creates the bundle for a request, unless all candidates are skipped.
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

// dequeueBundle ends the deliveries of the bundle.
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
