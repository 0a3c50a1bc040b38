package domain

import (
	"slices"
	"time"
)

// Take moves the cursor past the entry at p, which is at its position or after it, because
// the stream has numbered no entry between them. If the filter matches, the entry becomes a
// delivery.
func (c *Cursor) Take(p Position, matches bool) {
	c.standing.moveTo(p.Next())
	if !matches {
		c.standing.Counters.Filtered++
		delete(c.told, p.EntryID)
		delete(c.calls, p.EntryID)
		return
	}
	c.standing.Counters.Triggered++
	c.standing.Open = append(c.standing.Open, p)
	if o, ok := c.told[p.EntryID]; ok {
		delete(c.told, p.EntryID)
		c.apply(o)
	}
}

// Skip moves the cursor to p. The entries before it are gone from the stream.
func (c *Cursor) Skip(p Position) {
	n := p.Number - c.Position(p.Priority).Number
	if n < 0 {
		return
	}
	c.standing.Counters.Triggered += n
	c.standing.Counters.Expired += n
	c.standing.moveTo(p)
	for e := range c.told {
		if e.Priority == p.Priority && e.Number < p.Number {
			delete(c.told, e)
		}
	}
}

// CanTake reports whether the cursor may take an entry of a priority now. Entries that its
// filter does not match are no deliveries, so they may be taken as long as it reports true.
func (c *Cursor) CanTake(priority int, now time.Time) bool {
	if c.isTakingAgain(priority) {
		return true
	}
	s := &c.standing
	open := 0 // taken, and not called yet
	for _, p := range s.Open {
		if _, called := c.calls[p.EntryID]; !called {
			open++
		}
	}
	if caution := s.Caution; caution != nil && (len(caution.Open) > 0 || caution.Fresh[priority] == 0) {
		return false
	}
	return c.retries.len() < MaxRetries && c.InFlight()+open < c.limit() && c.isReady(now)
}

// isTakingAgain reports whether the cursor has called with an entry that it has not taken
// since it was loaded again. Until it is taken, its result cannot be settled.
func (c *Cursor) isTakingAgain(priority int) bool {
	at := c.Position(priority).Number
	for e := range c.told {
		if e.Priority == priority && e.Number >= at {
			return true
		}
	}
	for e := range c.calls {
		if e.Priority == priority && e.Number >= at {
			return true
		}
	}
	return false
}

// A Call is a delivery that may be called now.
type Call struct {
	Position
	Attempts int // failed ones
	// Claim reports that a settlement has to be stored before the call begins.
	Claim bool
}

// Next returns the delivery to call next: one that was taken or, if there is none, the retry
// that has been due the longest. It returns false if nothing may be called now.
func (c *Cursor) Next(now time.Time) (Call, bool) {
	if c.InFlight() >= c.limit() || !c.isReady(now) {
		return Call{}, false
	}
	call, ok := c.candidate(now)
	if !ok || c.standing.Caution == nil {
		return call, ok
	}
	s := &c.standing
	switch {
	case s.Claim == nil || s.Claim.Entry != call.EntryID:
		s.Claim, c.claimed = &Claim{Entry: call.EntryID, By: s.By, Count: 1}, false
	case s.Claim.By != s.By:
		s.Claim, c.claimed = &Claim{Entry: call.EntryID, By: s.By, Count: s.Claim.Count + 1}, false
	}
	call.Claim = !c.claimed
	return call, true
}

// candidate returns what Next returns, whether it may be called or not. What is claimed comes
// first: a delivery that ended a node has to be found before others are called.
func (c *Cursor) candidate(now time.Time) (Call, bool) {
	s := &c.standing
	if s.Caution != nil && s.Claim != nil {
		call, ok := c.outstanding(s.Claim.Entry)
		if r := c.retries.get(s.Claim.Entry); ok && (r == nil || !r.Due.After(now)) {
			return call, true
		}
	}
	for _, p := range s.Open {
		if _, called := c.calls[p.EntryID]; !called {
			return Call{Position: p}, true
		}
	}
	if s.Caution != nil && s.Caution.Retries == 0 {
		return Call{}, false
	}
	if r := c.retries.first(); r != nil && !r.Due.After(now) {
		return Call{Position: r.Position, Attempts: r.Attempts}, true
	}
	return Call{}, false
}

// outstanding returns the call of a delivery that is not called already.
func (c *Cursor) outstanding(e EntryID) (Call, bool) {
	if _, called := c.calls[e]; called {
		return Call{}, false
	}
	if i := c.standing.indexOpen(e); i >= 0 {
		return Call{Position: c.standing.Open[i]}, true
	}
	if r := c.retries.get(e); r != nil {
		return Call{Position: r.Position, Attempts: r.Attempts}, true
	}
	return Call{}, false
}

// Begin notes that call is under way.
func (c *Cursor) Begin(call Call) {
	c.calls[call.EntryID] = call.Attempts
	c.retries.remove(call.EntryID, true)
}

// EarliestDue returns when the next retry is due, or when the hold or the breaker ends if
// that is later. It is zero if no retry waits that is not called already.
func (c *Cursor) EarliestDue() time.Time {
	r := c.retries.first()
	if r == nil {
		return time.Time{}
	}
	due := r.Due
	for _, t := range []time.Time{c.standing.Hold, c.standing.BreakerTo} {
		if t.After(due) {
			due = t
		}
	}
	return due
}

func (c *Cursor) isReady(now time.Time) bool {
	s := &c.standing
	return s.State == Active && !now.Before(s.Hold) && !now.Before(s.BreakerTo)
}

// limit returns how many calls may be under way: one while the cursor is served carefully, or
// probes a receiver whose breaker was open.
func (c *Cursor) limit() int {
	if c.standing.Caution != nil || !c.standing.BreakerTo.IsZero() {
		return 1
	}
	return c.owner.Limit
}

// beCareful notes everything that the owner before may have been calling with.
func (c *Cursor) beCareful() {
	s := &c.standing
	caution := &Caution{Retries: max(s.Limit, 1)}
	for _, p := range s.Open {
		caution.Open = append(caution.Open, p.EntryID)
	}
	for i := range caution.Fresh {
		caution.Fresh[i] = max(s.Limit, 1)
	}
	s.Caution, c.claimed = caution, false
}

// EndCaution ends careful serving. The caller has found that the stream has no entry that
// CanTake allows to take. It does nothing while a delivery may be called that the owner before
// may have called with.
func (c *Cursor) EndCaution(now time.Time) {
	s := &c.standing
	if s.Caution == nil || c.InFlight() > 0 || len(s.Open) > 0 || c.retries.len() >= MaxRetries || !c.isReady(now) {
		return
	}
	if r := c.retries.first(); s.Caution.Retries > 0 && r != nil && !r.Due.After(now) {
		return
	}
	s.Caution, s.Claim = nil, nil
}

// settleCaution notes that a delivery, fresh or a retry, is no suspect any more.
func (c *Cursor) settleCaution(e EntryID, attempts int) {
	s := &c.standing
	if s.Claim != nil && s.Claim.Entry == e {
		s.Claim, c.claimed = nil, false
	}
	caution := s.Caution
	if caution == nil {
		return
	}
	switch i := slices.Index(caution.Open, e); {
	case i >= 0:
		caution.Open = slices.Delete(caution.Open, i, i+1)
	case attempts > 0:
		caution.Retries = max(caution.Retries-1, 0)
	default:
		caution.Fresh[e.Priority] = max(caution.Fresh[e.Priority]-1, 0)
	}
	if len(caution.Open) == 0 && caution.Retries == 0 && caution.Fresh == [Priorities]int{} {
		s.Caution, s.Claim = nil, nil
	}
}
