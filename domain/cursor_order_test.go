package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func newOrderedTest(t *testing.T, limit int) *cursorTest {
	c := newCursorTest(t, limit)
	c.owner.IsOrdered = true
	c.loadCursor("a")
	return c
}

func TestAnOrderedCursor_HasOneDeliveryAtATime(t *testing.T) {
	c := newOrderedTest(t, 5)
	c.takeEntries(1)
	call := c.beginCall()
	require.False(t, c.CanTake(0, c.now))
	require.False(t, c.CanTake(1, c.now), "one call at a time, whatever the priority")
	c.endCall(call, domain.Answer{Status: 500})
	require.False(t, c.CanTake(0, c.now))
	c.storeChanges()
	require.False(t, c.CanTake(0, c.now), "the delivery waits for its next attempt")
	require.True(t, c.IsStopped())
	c.now = c.now.Add(time.Minute)
	c.endCall(c.beginCall(), domain.Answer{Status: 200})
	require.False(t, c.CanTake(0, c.now), "the result is not stored")
	c.storeChanges()
	require.False(t, c.IsStopped())
	c.Take(c.Position(0), false)
	c.takeEntries(1)
	require.EqualValues(t, 2, c.beginCall().Number)
}

func TestAnOrderedCursor_PassesADeadLetter(t *testing.T) {
	c := newOrderedTest(t, 1)
	c.owner.Policy.Attempts = 1
	c.loadCursor("a")
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	require.EqualValues(t, 1, c.standing.Counters.Errored)
	c.takeEntries(1)
	require.EqualValues(t, 1, c.beginCall().Number)
}

func TestAnOrderedCursor_WaitsForAMessageThatCannotBeRead(t *testing.T) {
	c := newOrderedTest(t, 1)
	c.takeEntries(1)
	c.Postpone(c.beginCall().EntryID, c.now.Add(time.Second))
	require.True(t, c.isIdle())
	require.False(t, c.CanTake(0, c.now))
	c.now = c.now.Add(time.Second)
	require.Zero(t, c.beginCall().Number)
}

// A bundle that is not stored is unknown to the next owner, which would call its deliveries. So no
// later delivery is called before the bundle is stored.
func TestAnOrderedCursor_CallsNothingBehindABundleThatIsNotStored(t *testing.T) {
	c := newOrderedTest(t, 1)
	peek := &domain.ReplayRequest{ID: "bundle", Number: 1, Peek: &domain.PeekRequest{
		Limit: 2, Entries: []domain.Position{{EntryID: domain.EntryID{Number: 0}}, {EntryID: domain.EntryID{Number: 1}}},
	}}
	isWaiting := func() bool { return !c.CanTake(0, c.now) && c.isIdle() }
	require.True(t, c.ApplyReplayRequest(peek, nil, c.now))
	require.EqualValues(t, 2, c.Position(0).Number)
	require.True(t, isWaiting(), "the bundle is not stored")

	c.loadCursor("b") // node b takes over, because node a has ended
	c.takeEntries(1)
	require.True(t, c.ApplyReplayRequest(peek, nil, c.now), "the delivery that b has taken is not called yet, and is in the bundle")
	require.False(t, c.EndCaution(c.now), "the stream may have more entries that node a has called")
	c.Settlement()
	require.True(t, isWaiting(), "the bundle is being stored")
	c.Unstored()
	require.True(t, isWaiting(), "the store was busy")
	c.storeChanges()
	require.Len(t, c.standing.Held.Taken, 2)
	require.True(t, c.EndCaution(c.now))
	c.takeEntries(1)
	require.EqualValues(t, 2, c.beginCall().Number)
}

// Two owners create different bundles for the same request. Node b stores its bundle, without the
// first delivery, which it is calling. The consumer dequeues node b's bundle. Node a must not
// dequeue its own bundle.
func TestAnOrderedCursor_DoesNotDequeueABundleThatIsNotStored(t *testing.T) {
	c := newOrderedTest(t, 1)
	a, first, second := c.Cursor, domain.Position{}, domain.Position{EntryID: domain.EntryID{Number: 1}}
	peek := &domain.ReplayRequest{ID: "bundle", Number: 1, Peek: &domain.PeekRequest{Limit: 1, Entries: []domain.Position{first, second}}}
	dequeue := &domain.ReplayRequest{ID: "dequeue", Number: 2, Dequeue: "bundle"}
	require.True(t, a.ApplyReplayRequest(peek, nil, c.now))

	c.loadCursor("b")
	c.takeEntries(1)
	c.Next(c.now)
	c.storeChanges() // the claim
	require.Zero(t, c.beginCall().Number)
	require.True(t, c.ApplyReplayRequest(peek, nil, c.now))
	c.storeChanges()
	require.Equal(t, []domain.Position{second}, c.standing.Held.Taken)
	require.True(t, c.ApplyReplayRequest(dequeue, nil, c.now))

	require.False(t, a.ApplyReplayRequest(dequeue, nil, c.now), "the bundle of a is not stored")
	require.False(t, a.CanTake(0, c.now), "b is calling with the first delivery")
}

func TestAnOrderedCursor_ReplaysARangeOneAtATime(t *testing.T) {
	c := newOrderedTest(t, 3)
	for range 3 {
		c.takeEntries(1)
		c.endCall(c.beginCall(), domain.Answer{Status: 200})
		c.storeChanges()
	}
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500}) // the delivery waits for its next attempt
	all := domain.ReplayRange{From: c.now.Add(-time.Hour), To: c.now.Add(time.Hour), Rate: 1}
	require.True(t, c.ApplyReplayRequest(&domain.ReplayRequest{ID: "r", Number: 1, Range: &all}, nil, c.now))
	c.storeChanges()
	for number := range int64(3) {
		require.True(t, c.CanReplay(c.now))
		r, _ := c.Replaying()
		c.TakeReplay(r.At, c.now, nil, c.now)
		require.False(t, c.CanReplay(c.now))
		c.storeChanges()
		call := c.beginCall()
		require.Equal(t, number, call.Number)
		c.endCall(call, domain.Answer{Status: 500})
		c.storeChanges()
		require.False(t, c.CanReplay(c.now), "it waits for its next attempt")
		c.now = c.now.Add(time.Minute)
		for {
			call, ok := c.Next(c.now)
			if !ok {
				break
			}
			c.Begin(call)
			c.endCall(call, domain.Answer{Status: 200})
			c.storeChanges()
		}
	}
	require.EqualValues(t, 7, c.standing.Counters.Delivered)
	require.Zero(t, c.standing.Outstanding())
}

func TestACursorThatBecomesOrdered_CallsTheFirstDeliveryNext(t *testing.T) {
	c := newCursorTest(t, 4)
	c.takeEntries(3)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	c.owner.IsOrdered = true
	c.loadCursor("a")
	require.True(t, c.isIdle(), "one has failed")
	c.now = c.now.Add(time.Minute)
	for number := range int64(3) {
		call := c.beginCall()
		require.Equal(t, number, call.Number)
		require.True(t, c.isIdle())
		require.False(t, c.CanTake(0, c.now))
		c.endCall(call, domain.Answer{Status: 200})
		c.storeChanges()
	}
	require.True(t, c.CanTake(0, c.now))
}
