package domain

import (
	"slices"
	"time"
)

// Take moves the cursor past the entry at p. p is the position of the cursor, or a later one if the
// stream has no entries between the two. If the entry matches the filter, it becomes a delivery.
func (c *Cursor) Take(p Position, matches bool) {
	c.standing.moveTo(p.Next())
	if !matches {
		c.standing.Counters.Filtered++
		c.removeDeferred(func(o Outcome) bool { return o.Entry == p.EntryID })
		delete(c.calls, p.EntryID)
		return
	}
	c.standing.Counters.Triggered++
	c.standing.Open = append(c.standing.Open, p)
	for _, o := range c.removeDeferred(func(o Outcome) bool { return o.Entry == p.EntryID }) {
		c.apply(o)
	}
}

// removeDeferred removes outcomes from c.deferred and returns them in the same order. A delivery
// may have several outcomes: it can fail again before its first failure is stored.
func (c *Cursor) removeDeferred(isRemoved func(Outcome) bool) (removed []Outcome) {
	c.deferred = slices.DeleteFunc(c.deferred, func(o Outcome) bool {
		if isRemoved(o) {
			removed = append(removed, o)
			return true
		}
		return false
	})
	return removed
}

// Skip moves the cursor to p, because the stream no longer contains the entries before p.
func (c *Cursor) Skip(p Position, now time.Time) {
	from := c.Position(p.Priority).EntryID
	n := p.Number - from.Number
	if n < 0 {
		return
	}
	if n > 0 {
		c.standing.addExpiry(from, p.Number, now)
	}
	c.standing.Counters.Triggered += n
	c.standing.Counters.Expired += n
	c.standing.moveTo(p)
	c.removeDeferred(func(o Outcome) bool { return o.Entry.Priority == p.Priority && o.Entry.Number < p.Number })
}

// CanTake reports whether the cursor may take an entry of the given priority now. An entry that
// does not match the filter becomes no delivery, so after such an entry the cursor may take the
// next one.
func (c *Cursor) CanTake(priority int, now time.Time) bool {
	if c.isTakingAgain(priority) {
		return true
	}
	s := &c.standing
	open := 0 // number of deliveries that were taken but not called yet
	for _, p := range s.Open {
		if _, called := c.calls[p.EntryID]; !called {
			open++
		}
	}
	if s.isCareful() && (len(s.Open) > 0 || s.Caution.Fresh[priority] == 0) {
		return false
	}
	if c.owner.IsOrdered && c.isDelivering() {
		return false
	}
	return c.retries.len() < MaxRetries && c.InFlight()+open < c.limit() && c.isReady(now)
}

// isTakingAgain reports whether the cursor has to take an entry again that was already called. This
// happens if the cursor was loaded again in a state from before it took the entry. The result of
// the call cannot be settled before the entry is taken again.
func (c *Cursor) isTakingAgain(priority int) bool {
	at := c.Position(priority).Number
	if slices.ContainsFunc(c.deferred, func(o Outcome) bool { return o.Entry.Priority == priority && o.Entry.Number >= at }) {
		return true
	}
	for e := range c.calls {
		if e.Priority == priority && e.Number >= at {
			return true
		}
	}
	return false
}

// A Call is a delivery that the caller may make now.
type Call struct {
	Position
	Attempts int // number of failed attempts
	Replay   int // Retry.Replay
	// Claim is set if the caller has to store a settlement with the claim before the call begins.
	Claim bool
}

// Next returns the delivery to call next, or false if no delivery may be called now. Open
// deliveries precede due retries. Among open deliveries, the first one of the highest priority is
// next. Among due retries, a PriorityTurn selects the priority, and its earliest retry is next.
func (c *Cursor) Next(now time.Time) (Call, bool) {
	c.observe(now)
	if c.InFlight() >= c.limit() || !c.isReady(now) {
		return Call{}, false
	}
	s := &c.standing
	call, ok := c.nextCandidate(now)
	if !ok || !s.isSuspect(call.EntryID) {
		return call, ok
	}
	switch {
	case s.Claim == nil || s.Claim.Entry != call.EntryID:
		s.Claim, c.claimed = &Claim{Entry: call.EntryID, By: s.By, Count: 1}, false
	case s.Claim.By != s.By:
		s.Claim, c.claimed = &Claim{Entry: call.EntryID, By: s.By, Count: s.Claim.Count + 1}, false
	}
	call.Claim = !c.claimed
	return call, true
}

// nextCandidate returns the delivery to call next, whether or not its claim is stored. The claimed
// delivery comes first, even if it is not due by this clock: a delivery that crashes nodes must be
// found before others are called. Only one claim is stored at a time, so no other suspect is called
// during a call of the claimed delivery.
func (c *Cursor) nextCandidate(now time.Time) (Call, bool) {
	s := &c.standing
	if s.Claim != nil {
		if call, ok := c.outstandingCall(s.Claim.Entry); ok && !c.isPostponed(s.Claim.Entry, now) {
			return call, true
		}
	}
	if p, ok := c.nextOpen(now); ok {
		return Call{Position: p}, true
	}
	r := c.retries.nextDue(now)
	if s.isCareful() {
		if suspect := c.suspectRetry(now); suspect != nil || c.retries.len() < MaxRetries {
			r = suspect
		} // a cursor with MaxRetries retries takes no entries, so it calls due retries that are not suspects, too
	}
	if r == nil || c.isCallingClaimed() && s.isSuspect(r.EntryID) {
		return Call{}, false
	}
	return callOf(r), true
}

// nextOpen returns the next open delivery that may be called: the first one of the highest
// priority.
func (c *Cursor) nextOpen(now time.Time) (next Position, ok bool) {
	if c.owner.IsOrdered {
		return c.nextInOrder(now)
	}
	for _, p := range c.standing.Open {
		if ok && p.Priority <= next.Priority {
			continue
		}
		if c.canCallOpen(p.EntryID, now) {
			next, ok = p, true
		}
	}
	return next, ok
}

// canCallOpen reports whether an open delivery may be called.
func (c *Cursor) canCallOpen(e EntryID, now time.Time) bool {
	_, called := c.calls[e]
	return !called && !c.isHeld(e) && !c.isPostponed(e, now)
}

func callOf(r *Retry) Call {
	return Call{Position: r.Position, Attempts: r.Attempts, Replay: r.Replay}
}

// isCallingClaimed reports whether the claimed delivery is being called.
func (c *Cursor) isCallingClaimed() bool {
	if c.standing.Claim == nil {
		return false
	}
	_, called := c.calls[c.standing.Claim.Entry]
	return called
}

// suspectRetry returns a retry that is a suspect, is due and is not being called. It returns nil if
// none exists.
func (c *Cursor) suspectRetry(now time.Time) *Retry {
	for _, e := range c.standing.Caution.Suspects {
		r := c.retries.get(e)
		if _, called := c.calls[e]; r != nil && !called && !c.isHeld(e) && !r.Due.After(now) {
			return r
		}
	}
	return nil
}

// outstandingCall returns a call of an outstanding delivery. It returns false if the delivery is
// being called, or must not be called before a settlement is stored.
func (c *Cursor) outstandingCall(e EntryID) (Call, bool) {
	if _, called := c.calls[e]; called || c.isHeld(e) {
		return Call{}, false
	}
	if i := c.standing.indexOpen(e); i >= 0 {
		return Call{Position: c.standing.Open[i]}, true
	}
	if r := c.retries.get(e); r != nil {
		return callOf(r), true
	}
	return Call{}, false
}

// Begin records that the given call is under way.
func (c *Cursor) Begin(call Call) {
	c.calls[call.EntryID] = call.Attempts
	delete(c.postponed, call.EntryID)
	if c.retries.get(call.EntryID) != nil {
		c.retries.remove(call.EntryID, true)
		c.retries.turn.Pick()
	}
}

// EarliestDue returns the due time of the next retry. If a hold or an open breaker ends later, it
// returns that time instead. It returns the zero time if no retry waits.
func (c *Cursor) EarliestDue() time.Time {
	r := c.retries.firstDue()
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
	if c.owner.IsOrdered && c.hasUnstoredBundle() {
		return false
	}
	return s.State == Active && !now.Before(s.Hold) && !now.Before(s.BreakerTo)
}

// limit returns the maximum number of concurrent calls. It is 1 for an ordered cursor, while fresh
// deliveries are suspects, and until a probe has closed the breaker.
func (c *Cursor) limit() int {
	if c.standing.isCareful() || !c.standing.BreakerTo.IsZero() || c.owner.IsOrdered {
		return 1
	}
	return c.owner.Limit
}

// isCareful reports whether fresh deliveries are suspects. If so, one delivery is called at a time.
func (s *Standing) isCareful() bool { return s.Caution != nil && s.Caution.includesFresh() }

// isSuspect reports whether a delivery must be claimed before it is called.
func (s *Standing) isSuspect(e EntryID) bool {
	return s.isCareful() || s.Caution != nil && slices.Contains(s.Caution.Suspects, e)
}

// recordSuspects records all deliveries that the previous owner may have been calling. Suspects of
// earlier owners remain suspects until they are settled: the previous owner may have ended for
// another reason than these deliveries.
func (c *Cursor) recordSuspects() {
	s := &c.standing
	limit := max(s.Limit, 1)
	caution := &Suspects{Suspects: c.retries.earliest(limit)}
	for _, p := range s.Open {
		caution.Suspects = append(caution.Suspects, p.EntryID)
	}
	for i := range caution.Fresh {
		caution.Fresh[i] = limit
	}
	if before, noted := s.Caution, caution.Suspects; before != nil {
		for _, e := range before.Suspects {
			if c.isOutstanding(e) && !slices.Contains(noted, e) {
				caution.Suspects = append(caution.Suspects, e)
			}
		}
		for i, n := range before.Fresh {
			caution.Fresh[i] = max(caution.Fresh[i], n)
		}
	}
	s.Caution, c.claimed = caution, false
}

// EndCaution records that fresh deliveries are no longer suspects, and reports whether it did. The
// caller has found no entry in the stream that the cursor may take. EndCaution does nothing while
// deliveries are open, under way or ready to be called, or while the cursor may make no calls.
func (c *Cursor) EndCaution(now time.Time) bool {
	s := &c.standing
	if !s.isCareful() || c.InFlight() > 0 || len(s.Open) > 0 || c.retries.len() >= MaxRetries || !c.isReady(now) {
		return false
	}
	if _, ok := c.nextCandidate(now); ok {
		return false
	}
	s.Caution.Fresh = [Priorities]int{}
	s.Caution.Suspects = slices.DeleteFunc(s.Caution.Suspects, func(e EntryID) bool { return c.retries.get(e) == nil })
	c.dropCaution()
	return true
}

// dropCaution clears Standing.Caution if neither listed nor fresh deliveries are suspects.
func (c *Cursor) dropCaution() {
	if s := &c.standing; len(s.Caution.Suspects) == 0 && !s.Caution.includesFresh() {
		s.Caution, s.Claim = nil, nil
	}
}

// settleCaution removes a settled delivery from the suspects.
func (c *Cursor) settleCaution(e EntryID) {
	s := &c.standing
	if s.Claim != nil && s.Claim.Entry == e {
		s.Claim, c.claimed = nil, false
	}
	caution := s.Caution
	if caution == nil {
		return
	}
	if i := slices.Index(caution.Suspects, e); i >= 0 {
		caution.Suspects = slices.Delete(caution.Suspects, i, i+1)
	} else if c.retries.get(e) == nil {
		caution.Fresh[e.Priority] = max(caution.Fresh[e.Priority]-1, 0)
	}
	c.dropCaution()
}
