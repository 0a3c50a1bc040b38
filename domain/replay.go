package domain

import (
	"slices"
	"time"
)

// A ReplayRequest asks the owner of a cursor to make ended deliveries again, or to hand out or
// end a bundle for a consumer that fetches its deliveries. It has exactly one of the members
// after Number. Any node stores it beside the cursor, and the owner of the cursor follows it.
type ReplayRequest struct {
	ID     string // unique id of the request
	Number int    // 1 for the first request of the cursor, without gaps

	Delivery *ReplayDelivery
	Range    *ReplayRange
	Stop     string // the ID of the request of a range
	Peek     *PeekRequest
	Dequeue  string // the ID of the bundle
}

// IsFetch reports whether r comes from a consumer that fetches its deliveries.
func (r *ReplayRequest) IsFetch() bool { return r.Peek != nil || r.Dequeue != "" }

// A ReplayDelivery is a delivery to be made again.
type ReplayDelivery struct {
	Position
	Published time.Time
}

// A ReplayRange says which ended deliveries are made again.
type ReplayRange struct {
	From, To time.Time // when the message was published: From is included, To is not
	Filter   string    // "": all messages that pass the filter of the receiver
	OnlyDead bool      // dead letters only
	Rate     int       // deliveries per second, 1 to MaxReplayRate
}

// The limits of replays.
const (
	MaxReplayRate     = 1000
	DefaultReplayRate = 10

	// MaxReplayRequests is the limit for the requests of a cursor that its owner has not
	// followed yet.
	MaxReplayRequests = 64
)

// Check returns an Invalid error that begins with the JSON pointer of what is wrong with r.
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

// Includes reports whether the time at which a message was published is in the range.
func (r *ReplayRange) Includes(published time.Time) bool {
	return !published.Before(r.From) && published.Before(r.To)
}

// ReplayRequests are the last requests of a cursor, in the order of their numbers.
type ReplayRequests []ReplayRequest

// Add returns q with r, which gets the next number, and without the requests up to number
// followed, which the owner has followed. It fails with Conflict if the same delivery or
// another range is requested already, or if followed comes from a stale read.
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

// After returns the requests with numbers above followed.
func (q ReplayRequests) After(followed int) ReplayRequests {
	for i := range q {
		if q[i].Number > followed {
			return q[i:]
		}
	}
	return nil
}

// Find returns the request with an ID, or nil.
func (q ReplayRequests) Find(id string) *ReplayRequest {
	for i := range q {
		if q[i].ID == id {
			return &q[i]
		}
	}
	return nil
}

// A ReplayState is the state of a replay.
type ReplayState int

// The states of a Replay.
const (
	ReplayRunning ReplayState = iota
	ReplayDone
	ReplayStopped // by its owner, or because the cursor was closed
)

// A Replay is a second position of a cursor: it goes through the entries of a range that the
// cursor has taken before, and makes their deliveries again.
type Replay struct {
	ID     string // id of the request for the replay
	Number int    // number of the request for the replay
	ReplayRange
	State ReplayState
	// At is the next entry. The priorities are replayed one after the other, the highest first.
	At  Position
	End [Priorities]int64 // for each priority, the number of the first entry that the cursor had not taken when the replay began

	Seen    int64 // entries that At has passed
	Matched int64 // deliveries that were made again
	Skipped int64 // matching deliveries that were outstanding
}

// Remaining returns an upper limit for the number of entries that At has not passed.
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

// moveTo moves the replay to p or, if p is at the end of its priority, to the next priority.
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

// FollowReplay carries out a request. dead is the dead letter of the requested delivery, or
// nil. It returns false if the request has to wait until a settlement is stored. Requests that
// were followed before are ignored.
func (c *Cursor) FollowReplay(r *ReplayRequest, dead *Retry, now time.Time) bool {
	s := &c.standing
	if r.Number <= s.Followed {
		return true
	}
	if d := r.Delivery; d != nil && s.State != Closed {
		if !c.hasRoomForReplay() {
			return false
		}
		if d.Number < c.Position(d.Priority).Number && !c.isOutstanding(d.EntryID) {
			c.revive(d.Position, d.Published, dead, r.Number, now)
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
		// The consumer has the stored bundle. A bundle in memory may have other deliveries:
		// this owner may have been replaced, and another one may have stored a bundle for the
		// same request.
		if c.hasUnstoredBundle() || c.changing()+len(s.Held.Retries) > MaxHeld {
			return false
		}
		c.dequeueBundle()
	}
	s.Followed = r.Number
	return true
}

// IsReplaying reports whether a replay of a range runs.
func (s *Standing) IsReplaying() bool { return s.Replay != nil && s.Replay.State == ReplayRunning }

// Replaying returns the running replay of the cursor, and false without one.
func (c *Cursor) Replaying() (Replay, bool) {
	if !c.standing.IsReplaying() {
		return Replay{}, false
	}
	return *c.standing.Replay, true
}

// Followed returns the number of the last request that the cursor has followed.
func (c *Cursor) Followed() int { return c.standing.Followed }

// CanReplay reports whether the replay of the cursor runs and may make one more delivery now.
// While fresh deliveries are served carefully, it may not.
func (c *Cursor) CanReplay(now time.Time) bool {
	s := &c.standing
	if !s.IsReplaying() || s.isCareful() || !c.isReady(now) || !c.hasRoomForReplay() {
		return false
	}
	if c.owner.IsOrdered && c.retries.byReplay[s.Replay.Number] > 0 {
		return false
	}
	if first := c.retries.firstDue(); first != nil && !first.Due.After(now) {
		return false // retries go first, those of this replay included
	}
	waiting := 0 // taken or replayed, and not called
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

// PassReplay moves the replay to p, past entries that it does not deliver.
func (c *Cursor) PassReplay(p Position) {
	r := c.standing.Replay
	r.Seen += p.Number - r.At.Number
	r.moveTo(p)
}

// EndReplayPriority moves the replay past the last entry of its priority.
func (c *Cursor) EndReplayPriority() {
	r := c.standing.Replay
	end := r.At
	end.Number = r.End[end.Priority]
	r.moveTo(end)
}

// TakeReplay makes the delivery of the entry at p again, and moves the replay past it. p is at
// or after the position of the replay. An outstanding delivery is counted as skipped. dead is
// the dead letter of the delivery, or nil.
func (c *Cursor) TakeReplay(p Position, published time.Time, dead *Retry, now time.Time) {
	r := c.standing.Replay
	c.PassReplay(p.Next())
	letter := c.deadLetter(p.EntryID, dead)
	switch {
	case c.isOutstanding(p.EntryID):
		r.Skipped++
		return
	case letter != nil:
		c.revive(p, published, letter, r.Number, now)
	case r.OnlyDead:
		return
	case c.owner.IsOrdered:
		c.revive(p, published, nil, r.Number, now)
	default:
		c.standing.Open = append(c.standing.Open, p)
		c.hold(p.EntryID)
		c.standing.Counters.Triggered++
	}
	r.Matched++
}

// hasReplayed reports whether a replay may have made a delivery again. Then the delivery may
// have a dead letter in the store although it is open.
func (s *Standing) hasReplayed(e EntryID) bool {
	return s.Replay != nil && e.Number < s.Replay.End[e.Priority]
}

// hasRoomForReplay reports whether the cursor may have one more retry, and whether its document
// fits into a settlement together with the results of all calls.
func (c *Cursor) hasRoomForReplay() bool {
	return c.retries.len() < MaxRetries && c.changing() < MaxConcurrency/2
}

// changing returns the number of documents with changes that are not stored yet.
func (c *Cursor) changing() int {
	n := len(c.changes)
	if c.pending != nil {
		n += len(c.pending.changes)
	}
	return n
}

func (c *Cursor) isOutstanding(e EntryID) bool {
	return c.retries.get(e) != nil || c.standing.indexOpen(e) >= 0 || c.standing.Held.Has(e)
}

// deadLetter returns the dead letter of a delivery: the one that a settlement will store, or
// else stored, which was read from the store.
func (c *Cursor) deadLetter(e EntryID, stored *Retry) *Retry {
	if dead := c.changes[e].dead; dead != nil {
		return dead
	}
	if c.pending != nil && c.pending.changes[e].dead != nil {
		return c.pending.changes[e].dead
	}
	return stored
}

// revive turns an ended delivery into a retry without attempts. number is the number of the
// request.
func (c *Cursor) revive(p Position, published time.Time, dead *Retry, number int, now time.Time) {
	next := Retry{Position: p, Published: published}
	letter := c.deadLetter(p.EntryID, dead)
	if letter != nil {
		next = *letter
	}
	next.Attempts, next.Due, next.Dead, next.Reason, next.Replay = 0, now, false, "", number
	ch := c.changes[p.EntryID]
	// Without a dead letter, its document is created: a dead letter that a stale read did not find keeps its
	// history, because the settlement is refused then.
	ch.dead, ch.mayExist = nil, ch.mayExist || letter != nil
	c.changes[p.EntryID] = ch
	c.retries.put(next)
	c.hold(p.EntryID)
	c.standing.Counters.Triggered++
}

// hold prevents calls of a delivery until the next settlement is stored. Otherwise, after a
// crash no later owner would know of the call, and a delivery that crashes its nodes would
// never be found.
func (c *Cursor) hold(e EntryID) {
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

// releaseHeld permits calls of a held delivery again, unless it is being called already.
func (c *Cursor) releaseHeld(e EntryID) {
	r := c.retries.all[e]
	if _, called := c.calls[e]; r != nil && r.index < 0 && !called && !c.isHeld(e) {
		c.retries.put(r.Retry)
	}
}
