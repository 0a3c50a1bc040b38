package domain_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// A cursor with MaxRetries retries takes no fresh entries. It calls every due retry, because it
// could never stop claiming deliveries if it called only suspects.
func TestACursorThatIsFull_CallsRetriesAfterItsOwnerEnded(t *testing.T) {
	c := newCursorTest(t, 1)
	c.owner.Policy = domain.Policy{Attempts: 100, First: time.Minute, Max: time.Minute}
	c.loadCursor("a")
	for c.standing.Retries < domain.MaxRetries {
		c.takeEntries(1)
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
		c.storeChanges()
	}
	c.loadCursor("b") // node b takes over, because node a has ended
	for range 5 {
		c.now = c.now.Add(time.Hour)
		c.EndCaution(c.now)
		call, ok := c.Next(c.now)
		require.True(t, ok, "a retry is due")
		if call.Claim {
			c.storeChanges()
			call, ok = c.Next(c.now)
			require.True(t, ok)
		}
		c.Begin(call)
		c.endCall(call, domain.Answer{Status: 500})
		c.storeChanges()
	}
}

func TestAClaimOfAnOwnerThatReleasedItsCursor_EndsNoDelivery(t *testing.T) {
	c := newCursorTest(t, 1)
	c.takeEntries(1)
	c.storeChanges()
	c.loadCursor("b") // node b takes over, because node a has ended
	for i := range domain.MaxClaims + 1 {
		call, ok := c.Next(c.now)
		require.True(t, ok)
		require.True(t, call.Claim)
		c.storeChanges() // the node stops before it makes the call
		c.Release()
		c.storeChanges()
		c.loadCursor("c" + strconv.Itoa(i))
	}
	require.Zero(t, c.standing.Counters.Errored, "no call has ended a node")
	call, ok := c.Next(c.now)
	require.True(t, ok)
	require.True(t, call.Claim)
}

// A suspect retry whose next attempt is due in hours does not delay other deliveries.
func TestAReplay_DoesNotWaitForSuspects(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(2)
	c.endCall(c.beginCall(), domain.Answer{Status: 200})
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	c.loadCursor("b") // node b takes over, because node a has ended
	replayed := domain.ReplayRange{From: c.now.Add(-time.Hour), To: c.now.Add(time.Hour), Rate: 1}
	require.True(t, c.ApplyReplayRequest(&domain.ReplayRequest{ID: "r", Number: 1, Range: &replayed}, nil, c.now))
	require.False(t, c.CanReplay(c.now), "fresh deliveries may have ended node a")
	require.True(t, c.EndCaution(c.now))
	require.True(t, c.isIdle())
	require.True(t, c.CanReplay(c.now))
	c.TakeReplay(domain.Position{}, c.now, nil, c.now)
	c.storeChanges()
	call := c.beginCall()
	require.Zero(t, call.Number)
	c.endCall(call, domain.Answer{Status: 200})
	c.storeChanges()
	require.NotNil(t, c.standing.Caution)
	require.EqualValues(t, 2, c.standing.Counters.Delivered)
}

// Node a crashes while it calls a delivery. Node b ends for another reason before the delivery is
// due again. The delivery is still a suspect.
func TestASuspect_IsNotFreedByTheEndOfAnotherOwner(t *testing.T) {
	c := newCursorTest(t, 1)
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	c.now = c.now.Add(time.Minute)
	c.endCall(c.beginCall(), domain.Answer{Status: 500}) // after two failures, the suspect waits longer than a delivery that has failed once
	c.storeChanges()
	suspect := domain.EntryID{}
	c.loadCursor("b") // node a's clock may have been ahead, so node a may have been calling this retry
	require.True(t, c.EndCaution(c.now))
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	c.storeChanges()
	require.True(t, c.retries[domain.EntryID{Number: 1}].Due.Before(c.retries[suspect].Due))

	c.loadCursor("c") // node c takes over, because node b has ended
	c.EndCaution(c.now)
	for c.standing.Retries > 0 {
		c.now = c.now.Add(time.Second)
		call, ok := c.Next(c.now)
		if !ok {
			continue
		}
		if call.EntryID == suspect {
			require.True(t, call.Claim, "it is claimed before it is called")
		}
		if call.Claim {
			c.storeChanges()
			call, ok = c.Next(c.now)
			require.True(t, ok)
		}
		c.Begin(call)
		c.endCall(call, domain.Answer{Status: 200})
		c.storeChanges()
	}
}

// Node a may have been calling three fresh deliveries when it ended, and node b one. After the end
// of node b, the next deliveries of node a are still suspects.
func TestFreshSuspects_AreNotForgottenWhenAnotherOwnerEnds(t *testing.T) {
	c := newCursorTest(t, 3)
	c.owner.Limit = 1
	c.loadCursor("b")
	require.Equal(t, 3, c.standing.Caution.Fresh[0])
	c.takeEntries(1)
	c.storeChanges()
	call := c.beginCall()
	c.endCall(call, domain.Answer{Status: 200})
	c.storeChanges()
	require.Equal(t, 2, c.standing.Caution.Fresh[0], "one was delivered")
	c.loadCursor("c")
	require.Equal(t, 2, c.standing.Caution.Fresh[0])
}

func TestASuspectThatHasEnded_IsForgotten(t *testing.T) {
	c := newCursorTest(t, 2)
	c.takeEntries(2)
	c.storeChanges()
	for i := range 5 {
		c.loadCursor("b" + strconv.Itoa(i))
		require.Len(t, c.standing.Caution.Suspects, 2, "each suspect is recorded once")
	}
	call, ok := c.Next(c.now)
	require.True(t, ok)
	require.True(t, call.Claim)
	c.storeChanges()
	c.endCall(c.beginCall(), domain.Answer{Status: 200})
	c.storeChanges()
	c.loadCursor("c")
	require.Len(t, c.standing.Caution.Suspects, 1)
}
