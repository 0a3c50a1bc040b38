package domain

import (
	"cmp"
	"slices"
)

// A HeldBundle has deliveries of a cursor that its consumer fetches instead of being called.
// Until the consumer has dequeued the bundle, the bundle does not change, and the receiver is
// not called with its deliveries.
type HeldBundle struct {
	ID      string     // id of the request for the bundle
	Taken   []Position // deliveries that had not failed; Standing.Open does not include them
	Retries []Position // deliveries that had failed; they remain among the retries of the cursor
}

// The limits of held bundles.
const (
	// MaxHeld is the limit for the deliveries of a bundle: dequeuing it fits into one
	// settlement.
	MaxHeld = MaxConcurrency / 2
	// MaxDequeued is the limit for the bundles that a Standing remembers as dequeued.
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

// Positions returns the positions of the deliveries, those of the highest priority first.
func (b *HeldBundle) Positions() []Position {
	all := slices.Concat(b.Taken, b.Retries)
	slices.SortFunc(all, func(a, b Position) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
	})
	return all
}

// A PeekRequest asks for a bundle, unless the cursor has one.
type PeekRequest struct {
	Limit int // for the deliveries of the bundle, up to MaxHeld
	// Entries are the candidates for the bundle, in the order in which they are tried. The
	// cursor leaves out deliveries that are being called or have ended, and all entries after
	// one that was not taken and is not in the list. All candidates match the filter of the
	// receiver. A delivery that failed while they were gathered may be in the list twice.
	Entries []Position
}

// HasDequeued reports whether s remembers that a bundle was dequeued.
func (s *Standing) HasDequeued(bundle string) bool { return slices.Contains(s.Dequeued, bundle) }

// holdRetries prevents calls with the retries of the bundle.
func (c *Cursor) holdRetries() {
	if b := c.standing.Held; b != nil {
		for _, p := range b.Retries {
			c.retries.remove(p.EntryID, true)
		}
	}
}

// handOut creates the bundle for a request.
func (c *Cursor) handOut(id string, r *PeekRequest) {
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

// dequeue ends the deliveries of the bundle.
func (c *Cursor) dequeue() {
	s := &c.standing
	for _, p := range s.Held.Retries {
		c.endDelivery(p.EntryID, nil)
	}
	s.Counters.Delivered += int64(s.Held.Len())
	dequeued := append(slices.Clone(s.Dequeued), s.Held.ID)
	s.Dequeued = dequeued[max(len(dequeued)-MaxDequeued, 0):]
	s.Held = nil
}
