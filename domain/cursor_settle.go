package domain

import (
	"maps"
	"slices"
	"time"
)

// An Outcome is the result of a call of a delivery.
type Outcome struct {
	Entry     EntryID
	Attempts  int // failed attempts when the call began
	Replay    int // Retry.Replay when the call began
	Published time.Time
	Answer    Answer
}

// A retryChange is a change of the document of a retry.
type retryChange struct {
	existed  bool   // the document was stored as a retry before the change
	mayExist bool   // the document may be stored as a dead letter
	dead     *Retry // the dead letter that replaces the retry
}

// Settle records the result of a call. The result is dropped if the delivery has ended since the
// call began, or if the attempt failed and is already counted: both may happen after the cursor
// was loaded again. The result of a call that began before a replay is dropped, too.
func (c *Cursor) Settle(o Outcome) {
	delete(c.calls, o.Entry)
	if r := c.retries.all[o.Entry]; r != nil && r.index < 0 && !c.isHeld(o.Entry) && !c.standing.Held.Has(o.Entry) {
		c.retries.put(r.Retry) // the retry waits again, unless apply ends or changes it
	}
	c.apply(o)
}

func (c *Cursor) apply(o Outcome) {
	s := &c.standing
	if s.State == Closed {
		return // Cancel ends the delivery
	}
	if o.Entry.Number >= c.Position(o.Entry.Priority).Number {
		c.deferred = append(c.deferred, o)
		return
	}
	r := c.retries.get(o.Entry)
	i := s.indexOpen(o.Entry)
	if r == nil && i < 0 || s.Held.Has(o.Entry) {
		return // the delivery has ended, or another owner has put it into a bundle
	}
	failed, replay := 0, 0
	if r != nil {
		failed, replay = r.Attempts, r.Replay
	}
	if o.Replay != replay || c.isHeld(o.Entry) {
		return // an earlier result has ended the delivery, and a replay has restarted it
	}
	success := c.owner.Policy.IsSuccess(o.Answer)
	if !success && failed != o.Attempts {
		return // the failure is already counted
	}
	if o.Answer.Lost {
		c.endLost(o, r)
		return
	}
	c.unstored = append(c.unstored, o)
	attempt := attemptOf(o.Entry, failed+1, o.Answer)
	s.Counters.Attempts++
	s.Recent = append(s.Recent, attempt)
	s.Recent = slices.Delete(s.Recent, 0, max(len(s.Recent)-MaxRecent, 0))
	c.settleCaution(o.Entry)
	c.settleBreaker(success, o.Answer.Ended())

	next := Retry{}
	if r != nil {
		next = *r
	} else {
		next.Position, next.Published = s.Open[i], o.Published
	}
	next.Attempts = failed + 1
	next.History = append(slices.Clone(next.History), attempt)
	next.History = slices.Delete(next.History, 0, max(len(next.History)-MaxHistory, 0))
	if success {
		c.endDelivery(o.Entry, nil)
		s.Counters.Delivered++
		return
	}
	v := DecideRetry(c.owner.Policy, o.Published, o.Answer.Ended(), next.Attempts, o.Answer)
	if v.Hold.After(s.Hold) {
		s.Hold, s.HoldFor = v.Hold, o.Answer.RetryAfter
	}
	if v.Pause && s.State == Active {
		s.State, s.Reason = Paused, reasonGone
	}
	if v.Dead {
		next.Dead, next.Reason = true, reasonSpent
		c.endDelivery(o.Entry, &next)
		s.Counters.Errored++
		return
	}
	c.noteChange(o.Entry)
	if i >= 0 {
		s.Open = slices.Delete(s.Open, i, i+1)
	}
	next.Due = v.Due
	c.retries.put(next)
}

// endDelivery removes an outstanding delivery. dead is the dead letter that the delivery becomes,
// or nil.
func (c *Cursor) endDelivery(e EntryID, dead *Retry) {
	if i := c.standing.indexOpen(e); i >= 0 {
		if dead == nil { // an open delivery has no document
			c.standing.Open = slices.Delete(c.standing.Open, i, i+1)
			return
		}
		c.noteChange(e)
		c.standing.Open = slices.Delete(c.standing.Open, i, i+1)
	} else {
		c.noteChange(e)
		c.retries.remove(e, false)
	}
	ch := c.changes[e]
	ch.dead = dead
	c.changes[e] = ch
}

// noteChange records that the document of a retry changes.
func (c *Cursor) noteChange(e EntryID) {
	if _, ok := c.changes[e]; !ok {
		c.changes[e] = retryChange{existed: c.retries.get(e) != nil, mayExist: c.standing.hasReplayed(e)}
	}
}

func (c *Cursor) settleBreaker(success bool, at time.Time) {
	s, p := &c.standing, &c.owner.Policy
	if success {
		s.Failures, s.FailedSince, s.BreakerTo = 0, time.Time{}, time.Time{}
		return
	}
	s.Failures++
	if s.FailedSince.IsZero() {
		s.FailedSince = at
	}
	if p.BreakAfter > 0 && s.Failures >= p.BreakAfter {
		s.BreakerTo = at.Add(p.BreakFor)
	}
}

// endPoison turns the claimed delivery into a dead letter if MaxClaims incarnations have
// claimed it and ended before they settled it.
func (c *Cursor) endPoison(now time.Time) {
	s := &c.standing
	if s.Claim == nil || s.Claim.By == s.By || s.Claim.Count < MaxClaims {
		return
	}
	e := s.Claim.Entry
	call, ok := c.outstandingCall(e)
	if !ok {
		s.Claim = nil
		return
	}
	dead := Retry{Position: call.Position, Attempts: call.Attempts}
	if r := c.retries.get(e); r != nil {
		dead = *r
	}
	dead.Dead, dead.Due, dead.Reason = true, now, reasonPoison
	c.settleCaution(e)
	c.endDelivery(e, &dead)
	s.Counters.Errored++
}

// Pause makes the cursor begin no more calls. Calls that are under way are still settled.
func (c *Cursor) Pause(reason string) {
	if c.standing.State == Active {
		c.standing.State, c.standing.Reason = Paused, reason
	}
}

// Resume ends a pause, a hold and an open breaker.
func (c *Cursor) Resume() {
	s := &c.standing
	if s.State != Closed {
		s.State, s.Reason, s.Hold = Active, "", time.Time{}
		s.Failures, s.FailedSince, s.BreakerTo = 0, time.Time{}, time.Time{}
	}
}

// ApplyPause pauses or resumes the cursor as the owner of its receiver requested. resumed is the
// number of times that the owner resumed the receiver. If this number has increased, ApplyPause has
// the effect of Resume. It reports whether the cursor has changed.
func (c *Cursor) ApplyPause(isPaused bool, resumed int) bool {
	s := &c.standing
	if resumed < s.Resumed {
		return false // the read of the owner's request was stale
	}
	before, hasResumed := s.State, resumed > s.Resumed
	if hasResumed {
		s.Resumed = resumed
		c.Resume()
	}
	if isPaused {
		c.Pause("its owner has paused it")
	}
	return hasResumed || s.State != before
}

// Cancel closes the cursor and cancels up to limit deliveries, minus the number of retries that
// the next settlement changes already. It reports whether more deliveries are outstanding. The
// results of calls under way will be dropped.
func (c *Cursor) Cancel(limit int) (more bool) {
	s := &c.standing
	s.State, s.Reason, s.Caution, s.Claim = Closed, "", nil, nil
	if s.IsReplaying() {
		s.Replay.State = ReplayStopped
	}
	limit = max(limit-len(c.changes), 0)
	cancelled := 0
	if s.Held != nil { // retries of the bundle are also in c.retries
		s.Counters.Cancelled += int64(len(s.Held.Taken))
		s.Held = nil
	}
	for ; len(s.Open) > 0 && cancelled < limit; cancelled++ {
		c.endDelivery(s.Open[0].EntryID, nil)
	}
	for e := range c.retries.all {
		if cancelled == limit {
			break
		}
		c.endDelivery(e, nil)
		cancelled++
	}
	s.Counters.Cancelled += int64(cancelled)
	return len(s.Open) > 0 || c.retries.len() > 0
}

// Release records that the owner has no calls under way, so the next owner need not be careful.
// It does nothing while calls are under way. It removes a claim of this owner: the claimed call
// did not begin, because its result would have ended the claim.
func (c *Cursor) Release() {
	s := &c.standing
	if c.InFlight() > 0 {
		return
	}
	s.Released = true
	switch {
	case s.Claim == nil || s.Claim.By != s.By:
	case s.Claim.Count == 1:
		s.Claim = nil
	default:
		s.Claim.By, s.Claim.Count = "", s.Claim.Count-1
	}
	c.claimed = false
}

// List makes the next settlement store in the entry of the shard that calls of the cursor may
// be due at a time. It is for cursors of watches, which have an entry only while deliveries are
// outstanding.
func (c *Cursor) List(from time.Time) {
	if s := &c.standing; s.Listed.IsZero() || from.Before(s.Listed) {
		c.listing = from
	}
	c.isUnlisting = false
}

// IsListed reports whether the shard has an entry for the cursor.
func (c *Cursor) IsListed() bool { return !c.standing.Listed.IsZero() }

// Unlist makes the next settlement remove the entry of the shard, unless a delivery is
// outstanding, or the entry counts more changes of the receiver than followed. It is for cursors
// of watches.
func (c *Cursor) Unlist(followed int64) { c.isUnlisting, c.followedChanges = true, followed }

// A Settlement has changes of a cursor that are stored atomically.
type Settlement struct {
	Standing Standing
	Create   []Retry   // new retries and dead letters
	Replace  []Retry   // new states of stored retries, some of which become dead letters
	Put      []Retry   // retries and dead letters that are new, or replace a stored dead letter
	Delete   []EntryID // stored retries that have ended
	List     bool      // Standing.Listed has to be stored in the entry of the shard first
	Unlist   bool      // the entry of the shard has to be removed afterwards, unless its count of changes differs from Changes
	Changes  int64     // number of changes of the receiver that the owner has followed, as the entry counts them
}

// Settlement returns all changes since the last settlement. The caller stores it and then calls
// Stored, or Unstored if the store has certainly not stored it. If the outcome is unknown, the
// caller loads the cursor again. A second settlement must not begin before the first has ended.
func (c *Cursor) Settlement() Settlement {
	s := &c.standing
	s.Retries, s.Digest, s.Late = c.retries.len(), c.retries.digest, c.retries.late
	var t Settlement
	earliest := s.Listed
	if from := c.listing; !from.IsZero() && (earliest.IsZero() || from.Before(earliest)) {
		earliest = from
	}
	for e, ch := range c.changes {
		doc := ch.dead
		if r := c.retries.get(e); r != nil && doc == nil {
			doc = r
			if earliest.IsZero() || r.Due.Before(earliest) {
				earliest = r.Due
			}
		}
		switch {
		case doc == nil && ch.existed:
			t.Delete = append(t.Delete, e)
		case doc != nil && ch.existed:
			t.Replace = append(t.Replace, *doc)
		case doc != nil && ch.mayExist:
			t.Put = append(t.Put, *doc)
		case doc != nil:
			t.Create = append(t.Create, *doc)
		}
	}
	// Changes are in the order of their entries, so that the same changes make the same requests.
	slices.SortFunc(t.Create, func(a, b Retry) int { return CompareEntries(a.EntryID, b.EntryID) })
	slices.SortFunc(t.Replace, func(a, b Retry) int { return CompareEntries(a.EntryID, b.EntryID) })
	slices.SortFunc(t.Put, func(a, b Retry) int { return CompareEntries(a.EntryID, b.EntryID) })
	slices.SortFunc(t.Delete, CompareEntries)
	t.List, t.Unlist = !earliest.Equal(s.Listed), c.isUnlisting && s.Outstanding() == 0
	c.pending = &pendingWrite{outcomes: len(c.unstored), changes: c.changes, held: c.held, listed: s.Listed, listing: c.listing, unlist: t.Unlist}
	if t.Unlist {
		t.List, t.Changes, earliest = false, c.followedChanges, time.Time{}
	}
	s.Listed, c.listing, c.isUnlisting = earliest, time.Time{}, false
	t.Standing = s.Clone()
	c.pending.claim, c.pending.bundle = t.Standing.Claim, t.Standing.Held
	c.changes, c.held = make(map[EntryID]retryChange), make(map[EntryID]struct{})
	return t
}

// Stored notes that the last settlement was stored.
func (c *Cursor) Stored() {
	c.unstored = slices.Delete(c.unstored, 0, c.pending.outcomes)
	if claim := c.pending.claim; claim != nil && c.standing.Claim != nil && *claim == *c.standing.Claim {
		c.claimed = claim.By == c.standing.By
	}
	held := c.pending.held
	c.storedBundle, c.pending = c.pending.bundle, nil
	for e := range held {
		c.releaseHeld(e)
	}
}

// Unstored notes that the last settlement was not stored. The next settlement includes its
// changes.
func (c *Cursor) Unstored() {
	for e, ch := range c.pending.changes {
		if later, ok := c.changes[e]; ok {
			ch.dead, ch.mayExist = later.dead, ch.mayExist || later.mayExist
		}
		c.changes[e] = ch
	}
	maps.Copy(c.held, c.pending.held)
	c.standing.Listed, c.isUnlisting = c.pending.listed, c.isUnlisting || c.pending.unlist
	if c.listing.IsZero() {
		c.listing = c.pending.listing
	}
	c.pending = nil
}
