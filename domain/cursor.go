package domain

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// A CursorID identifies the cursor of a subscription, of a consumer of a channel, or of a
// watch.
type CursorID struct{ s string }

// ParseCursorID accepts one to three parts, joined by "|". Each part is a text that ParseActorID
// accepts.
func ParseCursorID(s string) (CursorID, error) {
	parts := 0
	for from := 0; from <= len(s); parts++ {
		to := from
		for to < len(s) && s[to] != '|' {
			to++
		}
		if err := checkName("cursor id", s[from:to]); err != nil {
			return CursorID{}, err
		}
		from = to + 1
	}
	if parts > 3 {
		return CursorID{}, Errorf(Invalid, "cursor id: want at most 3 parts, got %d", parts)
	}
	return CursorID{s}, nil
}

// String returns the id as it was parsed.
func (c CursorID) String() string { return c.s }

// A CursorState says whether a cursor takes entries and makes calls.
type CursorState int

// The states of a cursor.
const (
	Active CursorState = iota
	Paused             // the cursor makes no calls, but retains its deliveries
	Closed             // the cursor takes no more entries, and its deliveries are cancelled
)

// Counters count the deliveries of a cursor. Triggered is always the sum of Delivered, Errored,
// Cancelled, Expired and the number of outstanding deliveries.
type Counters struct {
	Triggered int64 // deliveries that began: for matching entries, expired entries and replays
	Filtered  int64 // entries that did not match the filter
	Delivered int64
	Errored   int64 // dead letters
	Cancelled int64
	Expired   int64 // entries that expired in the stream before the cursor took them
	Attempts  int64 // calls whose results are stored
}

// A Claim records that a node is about to call a delivery that may crash nodes. It is stored before
// the call, so if the node crashes, the next owner knows which delivery to suspect.
type Claim struct {
	Entry EntryID
	By    string // incarnation of the node that claimed the delivery last
	Count int    // number of incarnations that claimed the delivery
}

// MaxClaims is the number of incarnations after which a delivery becomes a dead letter, if each has
// claimed it and ended during its call.
const MaxClaims = 3

// Suspects lists the deliveries that the previous owner may have been calling when it ended without
// releasing its cursor. A suspect is claimed before it is called.
//
// Until Fresh is zero, every delivery is claimed, and one delivery is called at a time. A retry may
// be a suspect before it is due: the clock of the previous owner may have been ahead.
type Suspects struct {
	Suspects []EntryID       // open deliveries, and the retries with the earliest due times
	Fresh    [Priorities]int // for each priority, how many further deliveries must be claimed before they are called
}

// includesFresh reports whether fresh deliveries are suspects, too.
func (c *Suspects) includesFresh() bool { return c.Fresh != [Priorities]int{} }

// A Standing is the stored state of a cursor, except its retries.
type Standing struct {
	Stream   StreamName
	Segment  int        // segment at which a priority begins if At contains no position for it
	At       []Position // for each priority, the position of the next entry to take
	Open     []Position // deliveries that the cursor has taken, and that have neither ended nor failed
	Counters Counters

	// Retries and Digest are the count and the digest of all retries. A read of the retries is
	// complete if it returns retries with the same count and digest.
	Retries int
	Digest  uint64
	Late    int       // number of retries with at most a third of their attempts left
	Listed  time.Time // no retry is due before this time; the shard entry stores this time or an earlier one

	State    CursorState
	Reason   string        // reason of the pause
	Resumed  int           // how often the receiver was resumed
	Hold     time.Time     // the receiver is not called before this time; zero: no hold
	HoldFor  time.Duration // length of the hold, counted from the answer that requested it
	Failures int           // consecutive failures
	// FailedSince is the time at which the first of the consecutive failures ended. It is zero
	// without failures, or if the time is unknown.
	FailedSince time.Time
	BreakerTo   time.Time // the breaker is open until this time, and half open afterwards; zero: closed

	By       string // incarnation of the last owner
	Limit    int    // maximum number of concurrent calls of the last owner
	Released bool   // the last owner has no calls under way
	Caution  *Suspects
	Claim    *Claim

	Followed int     // number of the last [ReplayRequest] that the owner has executed
	Replay   *Replay // the running replay, or the last one

	Held     *HeldBundle // bundle that the consumer fetches; nil: no bundle
	Dequeued []string    // ids of the last dequeued bundles, up to [MaxDequeued]

	Recent   []Attempt // last attempts, up to [MaxRecent]
	Marks    []Mark    // marks, ordered by time, up to [MaxMarks]
	Expiries []Expiry  // last expiries, up to [MaxExpiries]
	Unknown  []byte    // members of the stored document that only a newer version knows
}

// reasonGone is stored as the reason of a pause. It distinguishes the pause after an answer 410
// from a pause that the owner of the receiver requested.
const reasonGone = "the receiver answered 410 Gone"

// IsGone reports whether the cursor is paused because its receiver answered 410 Gone.
func (s *Standing) IsGone() bool { return s.State == Paused && s.Reason == reasonGone }

// MaxRecent is the maximum number of attempts in a Standing. It keeps the stored document small.
const MaxRecent = 16

// The limits of a cursor.
const (
	MaxConcurrency = 64     // maximum number of concurrent calls: their results fit into one batch of the store
	MaxRetries     = 10_000 // maximum number of retries: a cursor with this many takes no fresh deliveries
)

// Clone returns a deep copy of s.
func (s *Standing) Clone() Standing {
	c := *s
	c.At, c.Open, c.Recent, c.Expiries = slices.Clone(s.At), slices.Clone(s.Open), slices.Clone(s.Recent), slices.Clone(s.Expiries)
	c.Marks, c.Dequeued = slices.Clone(s.Marks), slices.Clone(s.Dequeued)
	if s.Caution != nil {
		caution := *s.Caution
		caution.Suspects = slices.Clone(caution.Suspects)
		c.Caution = &caution
	}
	if s.Claim != nil {
		claim := *s.Claim
		c.Claim = &claim
	}
	if s.Replay != nil {
		replay := *s.Replay
		c.Replay = &replay
	}
	return c
}

// Outstanding returns the number of deliveries that have not ended.
func (s *Standing) Outstanding() int {
	n := len(s.Open) + s.Retries
	if s.Held != nil {
		n += len(s.Held.Taken)
	}
	return n
}

// Position returns the position of the next entry to take, for one priority.
func (s *Standing) Position(priority int) Position {
	i, found := s.indexAt(priority)
	if found {
		return s.At[i]
	}
	return Position{EntryID: EntryID{Priority: priority}, Segment: s.Segment}
}

func (s *Standing) moveTo(p Position) {
	i, found := s.indexAt(p.Priority)
	if found {
		s.At[i] = p
		return
	}
	s.At = slices.Insert(s.At, i, p)
}

func (s *Standing) indexAt(priority int) (int, bool) {
	return slices.BinarySearchFunc(s.At, priority, func(p Position, priority int) int { return cmp.Compare(p.Priority, priority) })
}

func (s *Standing) indexOpen(e EntryID) int {
	return slices.IndexFunc(s.Open, func(p Position) bool { return p.EntryID == e })
}

// An Owner is a node that serves a cursor.
type Owner struct {
	Incarnation string
	Limit       int // maximum number of concurrent calls, 1 to MaxConcurrency
	Policy      Policy
	KeepsMarks  bool // the cursor records its progress in Standing.Marks
	IsOrdered   bool // deliveries are made in the order of the stream; see cursor_order.go
}

// ErrIncomplete reports that a cursor and its retries were read at different times, and do not
// match.
var ErrIncomplete = errors.New("the retries are not those of the cursor")

// A Cursor combines a receiver's position in a stream with the state of the receiver's deliveries,
// in the memory of the node that owns the cursor. If the node ends before a [Settlement] stores a
// change, the change is lost. A Cursor is not safe for concurrent use.
//
//	           Take          Begin           Settle
//	stream ──────────▶ open ───────▶ called ────────▶ delivered
//	             │      ▲               │  │
//	             ▼      │  load again   │  ├──────────▶ retry ─▶ called …
//	         filtered   └───────────────┘  └──────────▶ dead letter
type Cursor struct {
	standing Standing
	owner    Owner
	retries  retries

	calls       map[EntryID]int         // number of failed attempts of each delivery that is being called, when its call began
	deferred    []Outcome               // outcomes of entries that the cursor has to take again, since it was loaded in an older state
	unstored    []Outcome               // outcomes that are applied, but not stored yet
	postponed   map[EntryID]time.Time   // for each delivery whose message could not be read, the time of its next attempt
	changes     map[EntryID]retryChange // changes of retry documents since the last settlement
	held        map[EntryID]struct{}    // deliveries replayed since the last settlement; they are called after the next settlement is stored
	claimed     bool                    // whether Standing.Claim is stored
	latest      time.Time               // latest time that was read from the owner's clock, without a monotonic reading
	ahead       time.Time               // latest stored time that boundTimes has replaced by an earlier one
	pending     *pendingWrite           // the settlement that is being stored
	listing     time.Time               // time to store in the shard's entry with the next settlement; zero: no write
	isUnlisting bool                    // the next settlement removes the shard's entry

	followedChanges int64 // value of Settlement.Changes for the removal of the shard's entry

	storedBundle *HeldBundle // stored value of Standing.Held, which another owner would load
}

type pendingWrite struct {
	outcomes int // number of elements at the start of Cursor.unstored that the settlement includes
	changes  map[EntryID]retryChange
	held     map[EntryID]struct{}
	claim    *Claim
	bundle   *HeldBundle
	listed   time.Time // Standing.Listed before the settlement
	listing  time.Time // Cursor.listing before the settlement
	unlist   bool
}

// OpenCursor returns a cursor with the stored state, owned by o. Before the caller calls the
// receiver, it must store the cursor's first settlement. This write fails if the stored state has
// changed in the meantime. Once it has succeeded, settlements of earlier owners fail. OpenCursor
// fails with ErrIncomplete if the retries do not match the standing.
func OpenCursor(s Standing, stored []Retry, o Owner, now time.Time) (*Cursor, error) {
	c := &Cursor{
		standing: s.Clone(), owner: o,
		calls: make(map[EntryID]int), changes: make(map[EntryID]retryChange), held: make(map[EntryID]struct{}),
		postponed: make(map[EntryID]time.Time), storedBundle: s.Held,
	}
	c.retries.lateFrom = o.Policy.lateFrom()
	var digest uint64
	for _, r := range stored {
		digest += r.digest()
		c.retries.put(r)
	}
	if len(stored) != s.Retries || digest != s.Digest {
		return nil, ErrIncomplete
	}
	st := &c.standing
	c.boundTimes(now)
	c.holdRetries()
	if st.By != "" && st.By != o.Incarnation && !st.Released {
		c.recordSuspects()
	}
	if st.By != o.Incarnation || st.Limit < o.Limit {
		st.Limit = o.Limit
	}
	st.By, st.Released = o.Incarnation, false
	c.endPoison(now)
	return c, nil
}

// Standing returns a copy of the standing, including changes that are not stored yet.
func (c *Cursor) Standing() Standing { return c.standing.Clone() }

// ViewStanding returns the standing without copying it. The caller must not change it, and may
// read it only until the next call of a method that changes c.
func (c *Cursor) ViewStanding() *Standing { return &c.standing }

// Position returns the position of the next entry to take, for one priority.
func (c *Cursor) Position(priority int) Position { return c.standing.Position(priority) }

// InFlight returns the number of calls that are under way or whose results are not stored. If the
// node crashes, it loses the results of up to this many calls.
func (c *Cursor) InFlight() int { return len(c.calls) + len(c.deferred) + len(c.unstored) }

// TakeOverCalls moves the calls and results from old, which is the same cursor before it was loaded
// again. It drops the results of deliveries that have ended since, and failed attempts that are
// already counted.
func (c *Cursor) TakeOverCalls(old *Cursor) {
	maps.Copy(c.postponed, old.postponed)
	for e, attempts := range old.calls {
		c.calls[e] = attempts
		c.retries.remove(e, true)
	}
	for _, o := range old.unstored {
		c.apply(o)
	}
	for _, o := range old.deferred {
		c.apply(o)
	}
}
