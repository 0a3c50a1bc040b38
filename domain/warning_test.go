package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestAWarning_ComesBeforeDeliveriesEnd(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	hour, soon := now.Add(-time.Hour), now.Add(domain.ExpiringWithin)
	for name, tc := range map[string]struct {
		standing domain.Standing
		expires  time.Time
		want     []domain.Warning
	}{
		"nothing":                {},
		"failing for an hour":    {domain.Standing{Failures: 2, FailedSince: hour}, time.Time{}, []domain.Warning{{Kind: domain.ReceiverFailing, At: hour}}},
		"failing for less":       {standing: domain.Standing{Failures: 2, FailedSince: hour.Add(time.Second)}},
		"failing since ?":        {standing: domain.Standing{Failures: 2}},
		"failed before a pause":  {standing: domain.Standing{State: domain.Paused, Failures: 2, FailedSince: hour}},
		"last attempts":          {domain.Standing{Retries: 9, Late: 4}, time.Time{}, []domain.Warning{{Kind: domain.LastAttempts, Count: 4}}},
		"expires soon":           {domain.Standing{}, soon, []domain.Warning{{Kind: domain.MessagesExpiring, At: soon}}},
		"expires later":          {expires: soon.Add(time.Second)},
		"closed":                 {standing: domain.Standing{State: domain.Closed, Late: 1}, expires: soon},
		"all, in their order":    {domain.Standing{Failures: 1, FailedSince: hour, Late: 1}, soon, []domain.Warning{{Kind: domain.ReceiverFailing, At: hour}, {Kind: domain.LastAttempts, Count: 1}, {Kind: domain.MessagesExpiring, At: soon}}},
		"paused, and it expires": {domain.Standing{State: domain.Paused}, soon, []domain.Warning{{Kind: domain.MessagesExpiring, At: soon}}},
	} {
		require.Equal(t, tc.want, tc.standing.Warnings(tc.expires, now), name)
	}
	names := make(map[string]bool)
	for _, kind := range domain.WarningKinds {
		names[kind.String()] = true
	}
	require.Len(t, names, len(domain.WarningKinds))
}

func TestACursor_CountsDeliveriesOnTheirLastAttempts(t *testing.T) {
	c := newCursorTest(t, 3)
	c.owner.Policy.Attempts, c.owner.Policy.BreakAfter = 6, 0
	c.loadCursor("a")
	require.False(t, c.CanWarn())
	c.takeEntries(2)
	for attempt := 1; attempt < 6; attempt++ {
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
		c.storeChanges()
		require.True(t, c.CanWarn())
		want := 0
		if attempt >= 4 { // two of six attempts are left
			want = 2
		}
		require.Equal(t, want, c.standing.Late, "attempt %d", attempt)
		c.now = c.now.Add(2 * time.Hour)
		if attempt == 4 {
			c.loadCursor("a")
			c.storeChanges()
			require.Equal(t, want, c.standing.Late, "the count is the same after a load")
		}
	}
	c.endCall(c.beginCall(), domain.Answer{Status: 200})
	c.storeChanges()
	require.Equal(t, 1, c.standing.Late)
	dead := c.beginCall()
	c.endCall(dead, domain.Answer{Status: 500})
	c.storeChanges()
	require.Zero(t, c.standing.Late)
	require.EqualValues(t, 1, c.standing.Counters.Errored)
	require.True(t, c.ApplyReplayRequest(&domain.ReplayRequest{ID: "r", Number: 1, Delivery: &domain.ReplayDelivery{Position: dead.Position}}, nil, c.now))
	c.storeChanges()
	require.Zero(t, c.standing.Late, "the count begins again")
}

func TestACursor_RecordsWhenItsReceiverBeganToFail(t *testing.T) {
	c := newCursorTest(t, 1)
	first := c.now
	c.takeEntries(1)
	for range 2 {
		c.endCall(c.beginCall(), domain.Answer{Status: 500})
		c.storeChanges()
		require.Equal(t, first, c.standing.FailedSince)
		c.now = c.now.Add(time.Hour)
	}
	c.endCall(c.beginCall(), domain.Answer{Status: 200})
	c.storeChanges()
	require.Zero(t, c.standing.FailedSince)
	c.takeEntries(1)
	c.endCall(c.beginCall(), domain.Answer{Status: 500})
	require.True(t, c.ApplyPause(false, 1))
	c.storeChanges()
	require.Zero(t, c.standing.FailedSince, "the owner has resumed the receiver")
}
