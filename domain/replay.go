package domain

import (
	"slices"
	"time"
)

// A ReplayRequest asks the owner of a cursor to repeat ended deliveries, or to create or dequeue a
// bundle for a consumer that fetches its deliveries. Any node can store a request next to the
// cursor, and the owner of the cursor executes it. Exactly one of the fields after Number is set.
type ReplayRequest struct {
	ID     string // unique id of the request
	Number int    // number of the request among those of the cursor, from 1 without gaps

	Delivery *ReplayDelivery
	Range    *ReplayRange
	Stop     string // ID of the earlier request for a range whose replay must stop
	Peek     *PeekRequest
	Dequeue  string // ID of the bundle to dequeue
}

// IsFetch reports whether r requests to create or dequeue a bundle for a consumer.
func (r *ReplayRequest) IsFetch() bool { return r.Peek != nil || r.Dequeue != "" }

// A ReplayDelivery identifies one ended delivery that must be repeated.
type ReplayDelivery struct {
	Position
	Published time.Time
}

// A ReplayRange selects ended deliveries that must be repeated.
type ReplayRange struct {
	From, To time.Time // range of publication times, including From but not To
	Filter   string    // filter in addition to the receiver's filter; "": no additional filter
	OnlyDead bool      // replay only dead letters
	Rate     int       // number of replayed deliveries per second, 1 to MaxReplayRate
}

// The limits of replays.
const (
	MaxReplayRate     = 1000
	DefaultReplayRate = 10

	// MaxReplayRequests is the maximum number of requests of a cursor that wait for its owner.
	MaxReplayRequests = 64
)

// Check returns an Invalid error if a field of r is invalid. The error text begins with the field's
// JSON pointer.
func (r *ReplayRange) Check() error {
	if !r.From.Before(r.To) {
		return Errorf(Invalid, "/to: want a time after from")
	}
	if r.Rate < 1 || r.Rate > MaxReplayRate {
		return Errorf(Invalid, "/rate: want 1 to %d deliveries per second, got %d", MaxReplayRate, r.Rate)
	}
	if n := len(r.Filter); n > MaxExpression {
		return Errorf(Invalid, "/filter: want at most %d bytes, got %d", MaxExpression, n)
	}
	return nil
}

// Includes reports whether a publication time is in the range.
func (r *ReplayRange) Includes(published time.Time) bool {
	return !published.Before(r.From) && published.Before(r.To)
}

// ReplayRequests contains the last requests of a cursor, ordered by number.
type ReplayRequests []ReplayRequest

// Add returns a copy of q to which r is added with the next number. It removes the requests that
// the owner has executed, which have numbers up to followed. Add fails with Conflict if q already
// requests the same delivery or a different range, or if followed comes from a stale read.
func (q ReplayRequests) Add(followed int, r ReplayRequest) (ReplayRequests, error) {
	kept := slices.Clone(q)
	r.Number = followed + 1
	if n := len(q); n > 0 {
		if q[0].Number > followed+1 {
			return nil, Errorf(Conflict, "another replay was requested meanwhile; send the request again")
		}
		r.Number = q[n-1].Number + 1
		kept = slices.DeleteFunc(kept, func(o ReplayRequest) bool { return o.Number <= followed })
	}
	for i := range kept {
		switch o := &kept[i]; {
		case r.Delivery != nil && o.Delivery != nil && r.Delivery.EntryID == o.Delivery.EntryID:
			return nil, Errorf(Conflict, "the replay of this delivery is requested already")
		case r.Range != nil && o.Range != nil:
			return nil, Errorf(Conflict, "a replay of the subscription is requested already: %s; wait until it is done, or stop it", o.ID)
		}
	}
	if len(kept) >= MaxReplayRequests {
		return nil, Errorf(Busy, "%d requests to the cursor wait for its owner", len(kept))
	}
	return append(kept, r), nil
}

// After returns the requests with numbers greater than followed.
func (q ReplayRequests) After(followed int) ReplayRequests {
	for i := range q {
		if q[i].Number > followed {
			return q[i:]
		}
	}
	return nil
}

// Find returns the request with the given ID, or nil.
func (q ReplayRequests) Find(id string) *ReplayRequest {
	for i := range q {
		if q[i].ID == id {
			return &q[i]
		}
	}
	return nil
}

// A ReplayState says whether a replay is running.
type ReplayState int

// The values of ReplayState.
const (
	ReplayRunning ReplayState = iota
	ReplayDone
	ReplayStopped // a request stopped the replay, or its cursor was closed
)

// A Replay repeats the deliveries of a range that the cursor has already taken. It has a separate
// position, which moves through the entries of the range.
type Replay struct {
	ID     string // id of the request that began the replay
	Number int    // number of the request that began the replay
	ReplayRange
	State ReplayState
	// At is the position of the next entry to replay. The priorities are replayed one after
	// another, the highest first.
	At  Position
	End [Priorities]int64 // for each priority, the number of the next entry to take when the replay began; the replay ends before it

	Seen    int64 // number of entries that At has passed
	Matched int64 // number of deliveries that were repeated
	Skipped int64 // number of matching deliveries that were not repeated, because they were outstanding
}

// Remaining returns an upper limit for the number of entries that the replay has not passed yet.
func (r *Replay) Remaining() int64 {
	if r.State != ReplayRunning {
		return 0
	}
	n := max(r.End[r.At.Priority]-r.At.Number, 0)
	for p := range r.At.Priority {
		n += r.End[p]
	}
	return n
}

// moveTo moves the replay to p. If p is at the end of its priority, the replay continues with the
// next priority.
func (r *Replay) moveTo(p Position) {
	r.At = p
	for r.At.Number >= r.End[r.At.Priority] {
		if r.At.Priority == 0 {
			r.State = ReplayDone
			return
		}
		r.At = Position{EntryID: EntryID{Priority: r.At.Priority - 1}}
	}
}

// ApplyReplayRequest executes a request. dead is the stored dead letter of the requested delivery,
// or nil. ApplyReplayRequest returns false if a settlement must be stored first. It ignores
// requests that were executed before.
func (c *Cursor) ApplyReplayRequest(r *ReplayRequest, dead *Retry, now time.Time) bool {
	s := &c.standing
	if r.Number <= s.Followed {
		return true
	}
	if d := r.Delivery; d != nil && s.State != Closed {
		if !c.hasRoomForReplay() {
			return false
		}
		if d.Number < c.Position(d.Priority).Number && !c.isOutstanding(d.EntryID) {
			c.restartDelivery(d.Position, d.Published, dead, r.Number, now)
		}
	}
	if r.Range != nil && s.State != Closed && !s.IsReplaying() {
		s.Replay = &Replay{ID: r.ID, Number: r.Number, ReplayRange: *r.Range}
		for p := range Priorities {
			s.Replay.End[p] = c.Position(p).Number
		}
		s.Replay.moveTo(Position{EntryID: EntryID{Priority: Priorities - 1}})
	}
	if s.IsReplaying() && r.Stop == s.Replay.ID {
		s.Replay.State = ReplayStopped
	}
	if r.Peek != nil && s.State != Closed && s.Held == nil {
		c.createBundle(r.ID, r.Peek)
	}
	if s.Held != nil && r.Dequeue == s.Held.ID {
		// The consumer has received the stored bundle. A bundle in memory may contain other
		// deliveries, because another owner may have stored a different bundle for the same
		// request. So the request waits until the bundle in memory is stored.
		if c.hasUnstoredBundle() || c.countChanges()+len(s.Held.Retries) > MaxHeld {
			return false
		}
		c.dequeueBundle()
	}
	s.Followed = r.Number
	return true
}

// IsReplaying reports whether the replay of a range is running.
func (s *Standing) IsReplaying() bool { return s.Replay != nil && s.Replay.State == ReplayRunning }

// Replaying returns the cursor's running replay. It returns false if none is running.
func (c *Cursor) Replaying() (Replay, bool) {
	if !c.standing.IsReplaying() {
		return Replay{}, false
	}
	return *c.standing.Replay, true
}

// LastReplayRequest returns the number of the last request that the owner has executed.
func (c *Cursor) LastReplayRequest() int { return c.standing.Followed }

// CanReplay reports whether a replay is running and may repeat one more delivery now. It returns
// false while fresh deliveries are suspects.
func (c *Cursor) CanReplay(now time.Time) bool {
	s := &c.standing
	if !s.IsReplaying() || s.isCareful() || !c.isReady(now) || !c.hasRoomForReplay() {
		return false
	}
	if c.owner.IsOrdered && c.retries.byReplay[s.Replay.Number] > 0 {
		return false
	}
	if first := c.retries.firstDue(); first != nil && !first.Due.After(now) {
		return false // due retries come first, including those of this replay
	}
	waiting := 0 // number of deliveries that were taken or replayed but not called yet
	for _, p := range s.Open {
		if _, called := c.calls[p.EntryID]; !called {
			waiting++
		}
	}
	for e := range c.held {
		if c.retries.get(e) != nil {
			waiting++
		}
	}
	if c.pending != nil {
		for e := range c.pending.held {
			if c.retries.get(e) != nil {
				waiting++
			}
		}
	}
	return c.InFlight()+waiting < c.limit()
}

// SkipReplay moves the replay to p without repeating the deliveries before p.
func (c *Cursor) SkipReplay(p Position) {
	r := c.standing.Replay
	r.Seen += p.Number - r.At.Number
	r.moveTo(p)
}

// EndReplayPriority moves the replay past the last entry of the current priority.
func (c *Cursor) EndReplayPriority() {
	r := c.standing.Replay
	end := r.At
	end.Number = r.End[end.Priority]
	r.moveTo(end)
}

// TakeReplay repeats the delivery of the entry at p, and moves the replay past this entry. p is the
// replay's position, or a later one. If the delivery is outstanding, it is counted as skipped and
// not repeated. dead is the stored dead letter of the delivery, or nil.
func (c *Cursor) TakeReplay(p Position, published time.Time, dead *Retry, now time.Time) {
	r := c.standing.Replay
	c.SkipReplay(p.Next())
	letter := c.deadLetter(p.EntryID, dead)
	switch {
	case c.isOutstanding(p.EntryID):
		r.Skipped++
		return
	case letter != nil:
		c.restartDelivery(p, published, letter, r.Number, now)
	case r.OnlyDead:
		return
	case c.owner.IsOrdered:
		c.restartDelivery(p, published, nil, r.Number, now)
	default:
		c.standing.Open = append(c.standing.Open, p)
		c.holdDelivery(p.EntryID)
		c.standing.Counters.Triggered++
	}
	r.Matched++
}

// hasReplayed reports whether a replay may have repeated a delivery. If so, the store may contain a
// dead letter of the delivery, although the delivery is open.
func (s *Standing) hasReplayed(e EntryID) bool {
	return s.Replay != nil && e.Number < s.Replay.End[e.Priority]
}

// hasRoomForReplay reports whether the cursor may have one more retry. The retry's document must
// fit into a settlement together with the results of all calls.
func (c *Cursor) hasRoomForReplay() bool {
	return c.retries.len() < MaxRetries && c.countChanges() < MaxConcurrency/2
}

// countChanges returns the number of documents whose changes are not stored yet.
func (c *Cursor) countChanges() int {
	n := len(c.changes)
	if c.pending != nil {
		n += len(c.pending.changes)
	}
	return n
}

func (c *Cursor) isOutstanding(e EntryID) bool {
	return c.retries.get(e) != nil || c.standing.indexOpen(e) >= 0 || c.standing.Held.Has(e)
}

// deadLetter returns the dead letter of a delivery that the current or the next settlement stores.
// If none exists, it returns stored, which the caller has read from the store.
func (c *Cursor) deadLetter(e EntryID, stored *Retry) *Retry {
	if dead := c.changes[e].dead; dead != nil {
		return dead
	}
	if c.pending != nil && c.pending.changes[e].dead != nil {
		return c.pending.changes[e].dead
	}
	return stored
}

// restartDelivery makes an ended delivery a retry without attempts. dead is the stored dead letter,
// or nil. number is the number of the replay request.
func (c *Cursor) restartDelivery(p Position, published time.Time, dead *Retry, number int, now time.Time) {
	next := Retry{Position: p, Published: published}
	letter := c.deadLetter(p.EntryID, dead)
	if letter != nil {
		next = *letter
	}
	next.Attempts, next.Due, next.Dead, next.Reason, next.Replay = 0, now, false, "", number
	ch := c.changes[p.EntryID]
	// Without a dead letter, the settlement creates the retry's document. If a stale read has
	// missed a dead letter, the store rejects the settlement, so the dead letter's history is not
	// lost.
	ch.dead, ch.mayExist = nil, ch.mayExist || letter != nil
	c.changes[p.EntryID] = ch
	c.retries.put(next)
	c.holdDelivery(p.EntryID)
	c.standing.Counters.Triggered++
}

// holdDelivery prevents calls of a delivery until the next settlement is stored. If an earlier call
// crashed the node, the next owner would not know about the call, and could not find the delivery
// that crashes nodes.
func (c *Cursor) holdDelivery(e EntryID) {
	c.held[e] = struct{}{}
	c.retries.remove(e, true)
}

// isHeld reports whether a delivery must not be called before a settlement is stored.
func (c *Cursor) isHeld(e EntryID) bool {
	_, held := c.held[e]
	if !held && c.pending != nil {
		_, held = c.pending.held[e]
	}
	return held
}

// releaseHeld permits calls of a delivery after a settlement was stored. It does nothing if a later
// settlement must be stored first, or if the delivery is being called.
func (c *Cursor) releaseHeld(e EntryID) {
	r := c.retries.all[e]
	if _, called := c.calls[e]; r != nil && r.index < 0 && !called && !c.isHeld(e) {
		c.retries.put(r.Retry)
	}
}
