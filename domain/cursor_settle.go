package domain

import (
	"maps"
	"slices"
	"time"
)

// An Outcome is the result of calling a receiver with one delivery.
type Outcome struct {
	Entry     EntryID
	Attempts  int // number of failed attempts when the call began
	Replay    int // value of Retry.Replay when the call began
	Published time.Time
	Answer    Answer
}

// A retryChange describes how the next settlement changes a retry's document.
type retryChange struct {
	existed  bool   // the document was stored as a retry before the change
	mayExist bool   // the store may contain a dead letter of this delivery
	dead     *Retry // dead letter that replaces the retry; nil: none
}

// Settle records the result of a call. It drops the result if the delivery has ended since the call
// began, or if the failure is already counted: a cursor that was loaded again may already include
// them. It also drops the result of a call that began before a replay.
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
		return // the cursor is closed, and Cancel ends its deliveries
	}
	if o.Entry.Number >= c.Position(o.Entry.Priority).Number {
		c.deferred = append(c.deferred, o)
		return
	}
	r := c.retries.get(o.Entry)
	i := s.indexOpen(o.Entry)
	if r == nil && i < 0 || s.Held.Has(o.Entry) {
		return // the delivery has ended, or another owner has added it to a bundle
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

// endDelivery removes an outstanding delivery. If the delivery becomes a dead letter, dead is that
// dead letter; otherwise dead is nil.
func (c *Cursor) endDelivery(e EntryID, dead *Retry) {
	if i := c.standing.indexOpen(e); i >= 0 {
		if dead == nil { // an open delivery has no stored document
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

// noteChange records that the next settlement changes the retry's document.
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

// endPoison makes the claimed delivery a dead letter if MaxClaims incarnations have claimed it and
// ended before they settled it.
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

// Pause stops new calls. Calls that are under way are still settled.
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

// ApplyPause pauses or resumes the cursor at the request of the receiver's owner. resumed is the
// number of times that the owner resumed the receiver. If this number has increased, ApplyPause
// calls Resume. It reports whether the cursor has changed.
func (c *Cursor) ApplyPause(isPaused bool, resumed int) bool {
	s := &c.standing
	if resumed < s.Resumed {
		return false // the request of the receiver's owner was read before a newer one was stored
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

// Cancel closes the cursor and cancels its deliveries, as long as the next settlement changes at
// most limit retries. It reports whether deliveries are still outstanding. The results of calls
// under way will be dropped.
func (c *Cursor) Cancel(limit int) (more bool) {
	s := &c.standing
	s.State, s.Reason, s.Caution, s.Claim = Closed, "", nil, nil
	if s.IsReplaying() {
		s.Replay.State = ReplayStopped
	}
	limit = max(limit-len(c.changes), 0)
	cancelled := 0
	if s.Held != nil { // the bundle's retries are also in c.retries
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

// Release records that the owner has no calls under way, so the next owner need not suspect any
// delivery. It does nothing while calls are under way. It also removes this owner's claim: the
// claimed call did not begin, because its result would have ended the claim.
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

// List makes the next settlement store, in the shard's entry for the cursor, a time from which
// calls may be due. It is for cursors of watches, which have an entry only while deliveries are
// outstanding.
func (c *Cursor) List(from time.Time) {
	if s := &c.standing; s.Listed.IsZero() || from.Before(s.Listed) {
		c.listing = from
	}
	c.isUnlisting = false
}

// IsListed reports whether the shard contains an entry for the cursor.
func (c *Cursor) IsListed() bool { return !c.standing.Listed.IsZero() }

// Unlist makes the next settlement remove the cursor's entry from the shard. It is for cursors of
// watches. The entry remains if a delivery is outstanding, or if the entry counts more changes of
// the receiver than followed.
func (c *Cursor) Unlist(followed int64) { c.isUnlisting, c.followedChanges = true, followed }

// A Settlement contains changes of a cursor that are stored atomically.
type Settlement struct {
	Standing Standing
	Create   []Retry   // new retries and dead letters
	Replace  []Retry   // stored retries that have changed, some of them into dead letters
	Put      []Retry   // new retries and dead letters that may replace a stored dead letter
	Delete   []EntryID // stored retries that have ended
	List     bool      // store Standing.Listed in the shard's entry before the settlement
	Unlist   bool      // remove the shard's entry after the settlement, unless its count of changes differs from Changes
	Changes  int64     // number of the receiver's changes that the owner has processed, by the count in the shard's entry
}

// Settlement returns all changes since the last settlement. The caller stores it and then calls
// Stored. It calls Unstored instead if the store has certainly not stored it. If the outcome is
// unknown, the caller loads the cursor again. A second settlement must not begin before the first
// has ended.
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
	// The changes are sorted by entry, so that a repeated settlement sends the same requests.
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

// Stored records that the last settlement was stored.
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

// Unstored records that the last settlement was not stored. The next settlement includes its
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
