package domain_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// A cursorTest is a cursor together with its stored state.
type cursorTest struct {
	*testing.T
	*domain.Cursor
	owner    domain.Owner
	standing domain.Standing
	retries  map[domain.EntryID]domain.Retry
	now      time.Time
}

func newCursorTest(t *testing.T, limit int) *cursorTest {
	c := &cursorTest{
		T: t, retries: make(map[domain.EntryID]domain.Retry), now: published,
		owner: domain.Owner{Incarnation: "a", Limit: limit, Policy: domain.Policy{Attempts: 3, First: time.Minute, Max: time.Hour, BreakAfter: 3, BreakFor: time.Minute}},
	}
	c.standing.Stream = must(domain.ParseTopic("t"))
	c.loadCursor("a")
	return c
}

// loadCursor opens the stored cursor, and stores the first settlement.
func (c *cursorTest) loadCursor(incarnation string) {
	c.Helper()
	c.owner.Incarnation = incarnation
	var all []domain.Retry
	for _, r := range c.retries {
		all = append(all, r)
	}
	var err error
	c.Cursor, err = domain.OpenCursor(c.standing, all, c.owner, c.now)
	require.NoError(c, err)
	c.storeChanges()
}

func (c *cursorTest) storeChanges() domain.Settlement {
	c.Helper()
	s := c.Settlement()
	c.applySettlement(s)
	c.Stored()
	return s
}

func (c *cursorTest) applySettlement(s domain.Settlement) {
	c.standing = s.Standing
	for _, r := range slices.Concat(s.Create, s.Replace, s.Put) {
		delete(c.retries, r.EntryID)
		if !r.Dead {
			c.retries[r.EntryID] = r
		}
	}
	for _, e := range s.Delete {
		delete(c.retries, e)
	}
}

func (c *cursorTest) takeEntries(n int) {
	c.Helper()
	for range n {
		require.True(c, c.CanTake(0, c.now))
		c.Take(c.Position(0), true)
	}
}

func (c *cursorTest) beginCall() domain.Call {
	c.Helper()
	call, ok := c.Next(c.now)
	require.True(c, ok)
	c.Begin(call)
	return call
}

func (c *cursorTest) endCall(call domain.Call, a domain.Answer) {
	a.Began = c.now
	c.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Replay: call.Replay, Published: c.now, Answer: a})
}

func (c *cursorTest) isIdle() bool {
	_, ok := c.Next(c.now)
	return !ok
}

func TestACursor_CallsNothingDuringAHold(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(2)
	c.endCall(c.beginCall(), domain.Answer{Status: 429, RetryAfter: 10 * time.Minute})
	require.True(t, c.isIdle(), "the other delivery also waits")
	require.False(t, c.CanTake(0, c.now))
	require.Equal(t, c.now.Add(10*time.Minute), c.EarliestDue())
	c.now = c.now.Add(10 * time.Minute)
	require.False(t, c.isIdle())
}

func TestABreaker_OpensAfterConsecutiveFailuresAndAllowsOneProbe(t *testing.T) {
	c := newCursorTest(t, 5)
	c.takeEntries(5)
	for range 3 {
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
	}
	c.storeChanges()
	require.True(t, c.isIdle())
	c.now = c.now.Add(time.Minute)
	probe := c.beginCall()
	require.True(t, c.isIdle(), "one probe at a time")
	c.endCall(probe, domain.Answer{Status: 500})
	c.storeChanges()
	require.True(t, c.isIdle(), "it is open again")
	c.now = c.now.Add(time.Minute)
	c.endCall(c.beginCall(), domain.Answer{Status: 200})
	c.storeChanges()
	c.beginCall()
	require.False(t, c.isIdle(), "it is closed")
}

func TestACursor_CountsExpiredEntries(t *testing.T) {
	c := newCursorTest(t, 5)
	c.takeEntries(2)
	p := c.Position(0)
	p.Number += 40
	c.Skip(p, c.now)
	c.storeChanges()
	require.EqualValues(t, 42, c.standing.Counters.Triggered)
	require.EqualValues(t, 40, c.standing.Counters.Expired)
	require.Equal(t, p, c.Position(0))
	require.Equal(t, []domain.Expiry{{From: domain.EntryID{Number: 2}, To: 42, At: c.now}}, c.standing.Expiries)
}

func TestExpiries_OfAdjacentEntriesAreMerged(t *testing.T) {
	c := newCursorTest(t, 5)
	skips := func(priority int, n int64) {
		p := c.Position(priority)
		p.Number += n
		c.Skip(p, c.now)
		c.storeChanges()
	}
	skips(0, 3)
	skips(1, 5)
	c.now = c.now.Add(time.Hour)
	skips(0, 4) // the next entries expire directly after the first expired ones
	skips(0, 0)
	require.Equal(t, []domain.Expiry{
		{From: domain.EntryID{}, To: 7, At: c.now},
		{From: domain.EntryID{Priority: 1}, To: 5, At: c.now.Add(-time.Hour)},
	}, c.standing.Expiries)
	require.EqualValues(t, 7, c.standing.Expiries[0].Count())
	require.Equal(t, &c.standing.Expiries[1], c.standing.Expiry(domain.EntryID{Priority: 1, Number: 4}))
	require.Nil(t, c.standing.Expiry(domain.EntryID{Priority: 1, Number: 5}))

	for range domain.MaxExpiries + 3 {
		c.takeEntries(1)
		c.endCall(c.beginCall(), domain.Answer{Status: 200})
		skips(0, 2)
	}
	require.Len(t, c.standing.Expiries, domain.MaxExpiries)
	require.EqualValues(t, 7+5+2*(domain.MaxExpiries+3), c.standing.Counters.Expired, "the counter includes all expired entries")
	require.Nil(t, c.standing.Expiry(domain.EntryID{}), "the oldest expiries are dropped")
}

func TestADueTimeOfAClockThatWasAhead_IsBounded(t *testing.T) {
	c := newCursorTest(t, 1)
	c.takeEntries(1)
	c.now = c.now.Add(1000 * time.Hour) // node a's clock is ahead
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	c.now = published
	c.loadCursor("b")
	c.now = c.now.Add(2 * time.Hour)
	require.False(t, c.isIdle())
}

// When a delivery fails, the clock is an hour ahead. It is set back while the owner runs, or before
// another owner loads the cursor. The retry waits at most for its delay.
func TestAClockThatIsSetBack_DelaysARetryByItsDelayAtMost(t *testing.T) {
	for _, isLoaded := range []bool{true, false} {
		for _, isReplayed := range []bool{true, false} {
			c := newCursorTest(t, 1)
			c.owner.Policy.Max = 24 * time.Hour
			c.loadCursor("a")
			c.takeEntries(1)
			c.now = c.now.Add(time.Hour)
			c.endCall(c.beginCall(), domain.Answer{Status: 500, Took: time.Second})
			c.storeChanges()
			wait := time.Minute
			if isReplayed {
				c.loadCursor("a")
				c.now = c.now.Add(2 * time.Minute)
				c.endCall(c.beginCall(), domain.Answer{Status: 200})
				c.storeChanges()
				p := domain.Position{}
				require.True(t, c.ApplyReplayRequest(&domain.ReplayRequest{ID: "r", Number: 1, Delivery: &domain.ReplayDelivery{Position: p}}, nil, c.now))
				c.storeChanges()
				wait = 0
			}
			require.Equal(t, isReplayed, !c.isIdle())
			c.now = c.now.Add(-50 * time.Minute)
			if isLoaded {
				c.loadCursor("a")
			}
			if wait > 0 {
				require.True(t, c.isIdle())
				require.Equal(t, c.now.Add(wait), c.EarliestDue())
				c.now = c.now.Add(wait - time.Second)
				require.True(t, c.isIdle(), "P8: no attempt before its delay has passed")
				c.now = c.now.Add(time.Second)
			}
			require.False(t, c.isIdle())
		}
	}
}

// If the previous owner's clock was right, the due times of retries do not change, even if the next
// owner's clock is slightly behind.
func TestAClockThatIsNotSetBack_ChangesNoDueTime(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(2)
	for range 2 {
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
		c.storeChanges()
		c.now = c.now.Add(7 * time.Second)
	}
	for range 3 {
		c.loadCursor("b")
		require.True(t, c.isIdle())
		require.Equal(t, published.Add(time.Minute), c.EarliestDue())
		c.now = c.now.Add(10 * time.Second)
	}
}

func TestAHoldOfAClockThatWasAhead_IsBounded(t *testing.T) {
	for name, change := range map[string]func(*cursorTest) domain.Answer{
		"Retry-After": func(*cursorTest) domain.Answer {
			return domain.Answer{Status: 429, RetryAfter: 10 * time.Minute}
		},
		"breaker": func(c *cursorTest) domain.Answer {
			c.owner.Policy.BreakAfter, c.owner.Policy.BreakFor = 1, 10*time.Minute
			c.loadCursor("a")
			return domain.Answer{Status: 500}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCursorTest(t, 2)
			answer := change(c)
			c.takeEntries(2)
			c.now = c.now.Add(time.Hour) // the clock is ahead
			c.endCall(c.beginCall(), answer)
			c.storeChanges()
			c.now = published
			c.loadCursor("b")
			c.now = c.now.Add(9 * time.Minute)
			require.True(t, c.isIdle(), "the hold has the length that the receiver requested")
			c.loadCursor("c")
			c.now = c.now.Add(2 * time.Minute)
			require.False(t, c.isIdle(), "the hold does not last until the time of the clock that was ahead")
		})
	}
}

func TestACursorThatIsLoadedAgain_RepeatsNoCallUnderWay(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	c.now = c.now.Add(time.Hour)
	call := c.beginCall()
	before := c.Cursor
	c.loadCursor("a")
	c.TakeOverCalls(before)
	require.True(t, c.isIdle())
	c.endCall(call, domain.Answer{Status: 500})
	c.storeChanges()
	c.now = c.now.Add(time.Hour)
	require.Equal(t, 2, c.beginCall().Attempts)
}

func TestASettlementThatWasNotStored_IsPartOfTheNext(t *testing.T) {
	c := newCursorTest(t, 1)
	c.owner.Policy.Attempts = 2
	c.loadCursor("a")
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	c.now = c.now.Add(time.Hour)
	call := c.beginCall()
	c.endCall(call, domain.Answer{Status: 500}) // the delivery becomes a dead letter
	first := c.Settlement()
	require.Len(t, first.Replace, 1)
	c.Unstored()
	again := c.storeChanges()
	require.Equal(t, first.Replace, again.Replace)
	require.True(t, again.Replace[0].Dead)
	require.Empty(t, c.Settlement().Replace)
}

func TestChangesDuringASettlement_AreMergedIfItWasNotStored(t *testing.T) {
	c := newCursorTest(t, 2)
	c.owner.Policy.Attempts = 2
	c.loadCursor("a")
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	lost := c.Settlement() // this settlement creates the retry
	require.Len(t, lost.Create, 1)
	c.now = c.now.Add(time.Hour)
	c.endCall(c.beginCall(), domain.Answer{Status: 500}) // the call ends while the settlement is being stored
	c.Unstored()
	s := c.storeChanges()
	require.Len(t, s.Create, 1, "the retry was never stored, so the dead letter is created")
	require.True(t, s.Create[0].Dead)
	require.Empty(t, s.Replace)
}

func TestOpenCursor_RefusesRetriesOfAnotherRead(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	retry := c.retries[domain.EntryID{}]
	for _, change := range []func(*domain.Retry){
		func(r *domain.Retry) { r.Attempts++ },
		func(r *domain.Retry) { r.Number++ },
		func(r *domain.Retry) { r.Priority++ },
	} {
		other := retry
		change(&other)
		_, err := domain.OpenCursor(c.standing, []domain.Retry{other}, c.owner, c.now)
		require.ErrorIs(t, err, domain.ErrIncomplete)
	}
	_, err := domain.OpenCursor(c.standing, nil, c.owner, c.now)
	require.ErrorIs(t, err, domain.ErrIncomplete)
}

func TestAReleasedCursor_IsNotServedCarefully(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(1)
	c.Release()
	c.storeChanges()
	c.loadCursor("b")
	require.Nil(t, c.standing.Caution)
	c.beginCall()
	c.Release()
	c.storeChanges()
	c.loadCursor("c")
	require.NotNil(t, c.standing.Caution, "b had a call under way")
}

func TestEachFailureBeforeTheFirstSettlement_IsCountedAfterALoad(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(1)
	for range 2 {
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
		c.now = c.now.Add(time.Hour)
	}
	before := c.Cursor
	c.loadCursor("a")
	c.TakeOverCalls(before)
	require.Equal(t, 2, c.InFlight(), "two results are not stored")
	c.takeEntries(1)
	c.storeChanges()
	require.EqualValues(t, 2, c.standing.Counters.Attempts)
	require.Equal(t, 2, c.retries[domain.EntryID{}].Attempts)
}

// Node a's clock is ahead, so it calls a retry early and crashes during the call. By node b's
// clock, the retry is not due yet. It is claimed when node b calls it.
func TestARetryThatWasDueByAClockThatIsAhead_IsClaimedWhenItIsCalled(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	c.Release()
	c.storeChanges()
	behind, ahead := c.now, c.now.Add(time.Hour)
	ends := 0
	for c.standing.Retries > 0 {
		ends++
		require.LessOrEqual(t, ends, domain.MaxClaims+1, "P9: a delivery ends few nodes")

		c.now = ahead
		c.loadCursor("a" + strconv.Itoa(ends))
		c.EndCaution(c.now)
		call, ok := c.Next(c.now)
		if ok && call.Claim {
			c.storeChanges()
			call, ok = c.Next(c.now)
		}
		if !ok {
			break // the delivery is a dead letter
		}
		c.Begin(call)

		c.now = behind
		c.loadCursor("b" + strconv.Itoa(ends))
		c.EndCaution(c.now)
		c.Release()
		c.storeChanges()
	}
	require.EqualValues(t, 1, c.standing.Counters.Errored)
}

func TestPositionsAndNames_AreReadBack(t *testing.T) {
	p := domain.Position{EntryID: domain.EntryID{Priority: 9, Number: 1 << 50}, Segment: 3, Page: 65_535}
	require.Equal(t, p, must(domain.ParsePosition(p.String())))
	for _, s := range []string{"", "1.2.3", "1.2.3.4.5", "10.0.0.0", "-1.0.0.0", "0.-1.0.0", "a.0.0.0"} {
		_, err := domain.ParsePosition(s)
		require.Equal(t, domain.Invalid, domain.KindOf(err), s)
	}
	for _, s := range []string{"topic|a", "channel|a.b"} {
		require.Equal(t, s, must(domain.ParseStreamName(s)).String())
	}
	for _, s := range []string{"", "a", "queue|a", "topic|", "topic|a|b"} {
		_, err := domain.ParseStreamName(s)
		require.Equal(t, domain.Invalid, domain.KindOf(err), s)
	}
	for _, s := range []string{"s|a", "c|channel|consumer"} {
		require.Equal(t, s, must(domain.ParseCursorID(s)).String())
	}
	for _, s := range []string{"", "|", "a|", "|shard|1", "a|b|c|d", "a b"} {
		_, err := domain.ParseCursorID(s)
		require.Equal(t, domain.Invalid, domain.KindOf(err), s)
	}
}

func TestAMessage_IsChecked(t *testing.T) {
	valid := domain.Message{ID: "1", Priority: 9, Attributes: map[string]string{"a": "b"}, ContentType: "text/plain", Payload: []byte("x")}
	require.NoError(t, valid.Check())
	for name, change := range map[string]func(*domain.Message){
		"id":       func(m *domain.Message) { m.ID = strings.Repeat("x", domain.MaxMessageID+1) },
		"control":  func(m *domain.Message) { m.ID = "a\nb" },
		"utf-8":    func(m *domain.Message) { m.ID = "\xff" },
		"priority": func(m *domain.Message) { m.Priority = -1 },
		"type":     func(m *domain.Message) { m.ContentType = "a\x00" },
		"attributes": func(m *domain.Message) {
			m.Attributes = map[string]string{"a": strings.Repeat("x", domain.MaxAttributeBytes)}
		},
		"payload": func(m *domain.Message) { m.Payload = make([]byte, domain.MaxPayload+1) },
	} {
		m := valid
		change(&m)
		require.Equal(t, domain.Invalid, domain.KindOf(m.Check()), name)
		if name != "id" && name != "control" && name != "utf-8" {
			require.NotEqual(t, valid.Digest(), m.Digest(), name)
		}
	}
}

func TestACursor_FollowsTheLatestRequestOfItsOwner(t *testing.T) {
	stream, err := domain.ParseTopic("t")
	require.NoError(t, err)
	c, err := domain.OpenCursor(domain.Standing{Stream: stream}, nil, domain.Owner{Incarnation: "a", Limit: 1}, time.Now())
	require.NoError(t, err)
	for _, step := range []struct {
		isPaused bool
		resumed  int
		changed  bool
		want     domain.CursorState
	}{
		{false, 0, false, domain.Active},
		{true, 0, true, domain.Paused},
		{true, 0, false, domain.Paused},
		{false, 1, true, domain.Active},
		{true, 0, false, domain.Active}, // this request of the receiver's owner is older than one that was already applied
		{true, 1, true, domain.Paused},
		{false, 2, true, domain.Active},
		{false, 2, false, domain.Active},
		{false, 3, true, domain.Active}, // a resumed cursor has no hold and no open breaker
	} {
		require.Equal(t, step.changed, c.ApplyPause(step.isPaused, step.resumed), step)
		require.Equal(t, step.want, c.Standing().State, step)
	}
}

// A batch of Cosmos DB is limited to 100 operations. The cursor and its shard's entry take two of
// them.
func TestASettlementOfADeletedReceiver_FitsIntoABatch(t *testing.T) {
	const limit = domain.MaxConcurrency
	c := newCursorTest(t, limit)
	c.owner.Policy = domain.Policy{Attempts: 100, First: time.Minute, Max: time.Minute}
	c.loadCursor("a")
	for range 4 {
		c.takeEntries(limit)
		for range limit {
			c.endCall(c.beginCall(), domain.Answer{Status: 500})
		}
		c.storeChanges()
	}
	c.now = c.now.Add(time.Hour)
	for range limit / 2 { // the results are not stored yet
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
	}
	var calls []domain.Call
	for range limit / 2 {
		calls = append(calls, c.beginCall())
	}
	fits := func(s domain.Settlement) {
		t.Helper()
		require.LessOrEqual(t, len(s.Create)+len(s.Replace)+len(s.Delete), limit)
	}
	require.True(t, c.Cancel(limit))
	fits(c.Settlement())
	for _, call := range calls {
		c.endCall(call, domain.Answer{Status: 500})
	}
	c.Unstored()
	for {
		more := c.Cancel(limit)
		fits(c.storeChanges())
		if !more {
			break
		}
	}
	require.Empty(t, c.retries)
	require.Equal(t, c.standing.Counters.Triggered, c.standing.Counters.Cancelled)
}
