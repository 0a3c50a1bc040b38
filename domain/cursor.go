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

// A CursorState says whether a cursor takes entries and makes calls.
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
	Triggered int64 // matched by the filter
	Filtered  int64 // not matched by the filter
	Delivered int64
	Errored   int64 // dead letters
	Cancelled int64
	Expired   int64 // expired in the stream before they were taken
	Attempts  int64 // calls of which the result is stored
}

// A Claim names the delivery that is called while a cursor is served carefully. It is stored
// before the call, so the next owner knows which call may have crashed this node.
type Claim struct {
	Entry EntryID
	By    string // the incarnation that claimed it last
	Count int    // incarnations that claimed it
}

// MaxClaims is the number of incarnations that may crash while they call one delivery. Then the
// delivery becomes a dead letter.
const MaxClaims = 3

// Caution lists the deliveries that have to be served carefully after an owner ended without
// releasing its cursor: those that it may have been calling.
//
// While Fresh has deliveries, one delivery is called at a time, and all are claimed. After that
// only the suspects are claimed. A retry may be a suspect before it is due: the clock of the
// previous owner may have been ahead.
type Caution struct {
	Suspects []EntryID       // entries that were taken, and the retries that were due first
	Fresh    [Priorities]int // number of the next deliveries of each priority
}

// includesFresh reports whether fresh deliveries are served carefully, too.
func (c *Caution) includesFresh() bool { return c.Fresh != [Priorities]int{} }

// A Standing is the stored state of a cursor, without its retries.
type Standing struct {
	Stream   StreamName
	Segment  int        // the segment in which a priority begins that is not in At
	At       []Position // for each priority, the position of the first entry that was not taken
	Open     []Position // taken, not ended and not failed
	Counters Counters

	// Count and digest of all retries. A read of the retries is complete if it has the same.
	Retries int
	Digest  uint64
	Late    int       // retries that have a third of their attempts left, or fewer
	Listed  time.Time // no retry is due before it; the entry of the shard has the same time or an earlier one

	State    CursorState
	Reason   string        // why it is paused
	Resumed  int           // how often its receiver was resumed
	Hold     time.Time     // no calls are made before this time
	HoldFor  time.Duration // from the answer that asked for it to Hold
	Failures int           // consecutive failures
	// FailedSince is when the first of these consecutive failures ended; zero without failures,
	// or if it is not known.
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

// Clone returns a copy of s. No later change of one affects the other.
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
	Incarnation string // incarnation of the node
	Limit       int    // calls under way, 1 to MaxConcurrency
	Policy      Policy
	KeepsMarks  bool // of the progress of the cursor
	IsOrdered   bool // the deliveries are made in the order of the stream; see cursor_order.go
}

// ErrIncomplete reports that the retries do not belong to the standing, because they were read
// at another time.
var ErrIncomplete = errors.New("the retries are not those of the cursor")

// A Cursor is a receiver's position in a stream with its deliveries, in the memory of the node
// that owns it. A change is lost with the node until a [Settlement] with it is stored. A Cursor
// is not safe for concurrent use.
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

	calls       map[EntryID]int         // under way, with the number of attempts that had failed before
	told        []Outcome               // of entries that this cursor has not taken yet, because it was loaded again
	unstored    []Outcome               // applied since the last settlement that was stored
	postponed   map[EntryID]time.Time   // until when deliveries wait whose message could not be read
	changes     map[EntryID]retryChange // of retry documents, since the last settlement
	held        map[EntryID]struct{}    // deliveries replayed since the last settlement; they are called after the next one is stored
	claimed     bool                    // the claim is stored
	latest      time.Time               // by the clock of the owner, so far; without a monotonic reading
	ahead       time.Time               // the latest stored time of those that were bounded
	writing     *writing                // the settlement that is being stored
	listing     time.Time               // time that the next settlement writes into the entry of the shard; zero: no write
	isUnlisting bool                    // the next settlement removes the entry of the shard

	followedChanges int64 // Settlement.Changes of the removal

	storedBundle *HeldBundle // Standing.Held as it is stored, which is what another owner would load
}

type writing struct {
	outcomes int // number of the first elements of unstored that it includes
	changes  map[EntryID]retryChange
	held     map[EntryID]struct{}
	claim    *Claim
	bundle   *HeldBundle
	listed   time.Time // Standing.Listed before the settlement
	listing  time.Time // Cursor.listing before the settlement
	unlist   bool
}

// OpenCursor returns the cursor with the stored state, owned by o. Its first settlement has to
// be stored before any call: this proves that standing and retries are current, and makes
// settlements of earlier owners fail. It fails with ErrIncomplete if the retries do not belong
// to the standing.
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

// ViewStanding returns the standing itself. The caller only reads it, and only until the next
// call of a method that changes c.
func (c *Cursor) ViewStanding() *Standing { return &c.standing }

// Position returns the first position of a priority that was not taken.
func (c *Cursor) Position(priority int) Position { return c.standing.Position(priority) }

// InFlight returns how many calls are under way, or have a result that is not stored. If the
// node crashes, the results of up to this many calls are lost.
func (c *Cursor) InFlight() int { return len(c.calls) + len(c.told) + len(c.unstored) }

// Adopt takes over the calls and results of old, the same cursor before it was loaded again.
// Results of deliveries that have ended meanwhile are dropped, and so are failed attempts that
// were counted already.
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
