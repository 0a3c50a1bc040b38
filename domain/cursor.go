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

// ParseCursorID accepts what ParseActorID accepts, in up to three parts joined by bars.
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

// A CursorState is the state in which a cursor is served or not.
type CursorState int

// The states of a cursor.
const (
	Active CursorState = iota
	Paused             // keeps its deliveries and makes no call
	Closed             // takes no more entries; its deliveries are cancelled
)

// Counters count the deliveries of a cursor. At any time, Triggered is the sum of
// Delivered, Errored, Cancelled, Expired and those that are outstanding.
type Counters struct {
	Triggered int64 // the filter let them pass
	Filtered  int64 // it did not
	Delivered int64
	Errored   int64 // dead letters
	Cancelled int64
	Expired   int64 // gone from the stream before they were taken
	Attempts  int64 // calls of which the result is stored
}

// A Claim names the delivery that is called while a cursor is served carefully. It is stored
// before the call, so the next owner knows which call may have ended this one.
type Claim struct {
	Entry EntryID
	By    string // the incarnation that claimed it last
	Count int    // incarnations that claimed it
}

// MaxClaims is the number of incarnations that may end while they call one delivery. Then it
// becomes a dead letter.
const MaxClaims = 3

// Caution lists the deliveries that have to be served carefully after an owner ended without
// releasing its cursor: those that it may have been calling.
//
// While Fresh has deliveries, one delivery is called at a time, and all are claimed. After that
// only the suspects are claimed: a retry that is not due by the clock of this owner may have
// been due by the clock of the previous one.
type Caution struct {
	Suspects []EntryID       // entries that were taken, and the retries that were due first
	Fresh    [Priorities]int // number of the next deliveries of each priority
}

// includesFresh reports whether fresh deliveries are served carefully, too.
func (c *Caution) includesFresh() bool { return c.Fresh != [Priorities]int{} }

// A Standing is what is stored of a cursor, apart from its retries.
type Standing struct {
	Stream   StreamName
	Segment  int        // where a priority begins that is not in At
	At       []Position // for each priority the first entry that was not taken
	Open     []Position // taken, not ended and not failed
	Counters Counters

	// The retries are complete if their count and digest are these.
	Retries int
	Digest  uint64
	Late    int       // retries that have a third of their attempts left, or fewer
	Listed  time.Time // no retry is due before it; the entry of the shard has the same time or an earlier one

	State    CursorState
	Reason   string        // why it is paused
	Resumed  int           // how often its receiver was resumed
	Hold     time.Time     // nothing is called before it
	HoldFor  time.Duration // from the answer that asked for it to Hold
	Failures int           // in a row
	// FailedSince is the end of the first of these failures; zero without failures, or if it is
	// not known.
	FailedSince time.Time
	BreakerTo   time.Time // the breaker is open until then, and half open after that; zero: closed

	By       string // the incarnation that proved it last
	Limit    int    // calls that it may have under way
	Released bool   // By has no calls under way
	Caution  *Caution
	Claim    *Claim

	Followed int     // number of the last [ReplayRequest] that was followed
	Replay   *Replay // that runs, or the last one

	Held     *HeldBundle // nil: the consumer holds no bundle
	Dequeued []string    // the last bundles that were dequeued, up to [MaxDequeued]

	Recent   []Attempt // the last ones, up to [MaxRecent]
	Marks    []Mark    // in the order of their times, up to [MaxMarks]
	Expiries []Expiry  // the last ones, up to [MaxExpiries]
	Unknown  []byte    // what the store keeps for a newer version
}

// reasonGone is stored: it distinguishes this pause from that of an owner.
const reasonGone = "the receiver answered 410 Gone"

// IsGone reports whether the cursor is paused because its receiver answered 410 Gone.
func (s *Standing) IsGone() bool { return s.State == Paused && s.Reason == reasonGone }

// MaxRecent is the limit for the attempts in a Standing: its document remains small.
const MaxRecent = 16

// The limits of a cursor.
const (
	MaxConcurrency = 64     // calls under way; so a settlement fits into a batch of the store
	MaxRetries     = 10_000 // waiting retries; a cursor with more takes no fresh deliveries
)

// Clone returns a copy of s that shares nothing that changes.
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

// Outstanding returns how many deliveries have begun and not ended.
func (s *Standing) Outstanding() int {
	n := len(s.Open) + s.Retries
	if s.Held != nil {
		n += len(s.Held.Taken)
	}
	return n
}

// Position returns the first position of a priority that was not taken.
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
	Incarnation string // of the node
	Limit       int    // calls under way, 1 to MaxConcurrency
	Policy      Policy
	KeepsMarks  bool // of the progress of the cursor
	IsOrdered   bool // the deliveries are made in the order of the stream; see cursor_order.go
}

// ErrIncomplete reports retries that are not those of the standing: they were read at
// another time.
var ErrIncomplete = errors.New("the retries are not those of the cursor")

// A Cursor is a receiver's position in a stream with its deliveries, in the memory of the
// node that owns it. Only a [Settlement] that was stored makes a change of it last. It is
// not safe for concurrent use.
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

	calls       map[EntryID]int         // under way, with the attempts that had failed before
	told        []Outcome               // of entries that are not taken yet, since the cursor was loaded again
	unstored    []Outcome               // applied since the last settlement that was stored
	postponed   map[EntryID]time.Time   // until when deliveries wait whose message could not be read
	changes     map[EntryID]retryChange // of retry documents, since the last settlement
	held        map[EntryID]struct{}    // replayed since the last settlement: they are called once that is stored
	claimed     bool                    // the claim is stored
	latest      time.Time               // by the clock of the owner, so far; without a monotonic reading
	ahead       time.Time               // the last one that is stored of those that were bounded
	writing     *writing                // the settlement that is being stored
	listing     time.Time               // time that the next settlement writes into the entry of the shard; zero: no write
	isUnlisting bool                    // the next settlement removes the entry of the shard

	followedChanges int64 // Settlement.Changes of that

	storedBundle *HeldBundle // Standing.Held as it is stored; another owner knows no other
}

type writing struct {
	outcomes int // the first ones of unstored
	changes  map[EntryID]retryChange
	held     map[EntryID]struct{}
	claim    *Claim
	bundle   *HeldBundle
	listed   time.Time // Standing.Listed before
	listing  time.Time // Cursor.listing before
	unlist   bool
}

// OpenCursor returns the cursor of what is stored, owned by o. Its first settlement has to be
// stored before any call: it proves that standing and retries are current, and refuses the
// settlements of earlier owners. It fails with ErrIncomplete if the retries are not those of
// the standing.
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
		c.beCareful()
	}
	if st.By != o.Incarnation || st.Limit < o.Limit {
		st.Limit = o.Limit
	}
	st.By, st.Released = o.Incarnation, false
	c.endPoison(now)
	return c, nil
}

// Standing returns a copy of the standing that has to be stored.
func (c *Cursor) Standing() Standing { return c.standing.Clone() }

// ViewStanding returns what Standing does, without a copy. It is only read, and only until the next call of
// a method that changes c.
func (c *Cursor) ViewStanding() *Standing { return &c.standing }

// Position returns the first position of a priority that was not taken.
func (c *Cursor) Position(priority int) Position { return c.standing.Position(priority) }

// InFlight returns how many calls are under way, or have a result that is not stored. If the
// node ends, this many calls at most leave no trace.
func (c *Cursor) InFlight() int { return len(c.calls) + len(c.told) + len(c.unstored) }

// Adopt takes over the calls and results of old, which is the same cursor before it was
// loaded again. A result of a delivery that has ended meanwhile is dropped, and so is a
// failed attempt that has been counted.
func (c *Cursor) Adopt(old *Cursor) {
	maps.Copy(c.postponed, old.postponed)
	for e, attempts := range old.calls {
		c.calls[e] = attempts
		c.retries.remove(e, true)
	}
	for _, o := range old.unstored {
		c.apply(o)
	}
	for _, o := range old.told {
		c.apply(o)
	}
}
