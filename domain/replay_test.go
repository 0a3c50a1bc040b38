package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestADeadLetterThatIsNotStored_IsReplayedWithItsHistory(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, isBeingStored := range []bool{false, true} {
		c, err := domain.OpenCursor(domain.Standing{}, nil, domain.Owner{Incarnation: "i", Limit: 1, Policy: domain.Policy{Attempts: 1}}, now)
		require.NoError(t, err)
		e := domain.Position{}
		c.Take(e, true)
		call, ok := c.Next(now)
		require.True(t, ok)
		c.Begin(call)
		c.Settle(domain.Outcome{Entry: e.EntryID, Published: now, Answer: domain.Answer{Began: now, Status: 500}})
		if isBeingStored {
			require.Len(t, c.Settlement().Create, 1)
		}
		require.True(t, c.ApplyReplayRequest(&domain.ReplayRequest{Number: 1, Delivery: &domain.ReplayDelivery{Position: e, Published: now}}, nil, now))
		if isBeingStored {
			c.Stored()
		}
		put := c.Settlement().Put
		require.Len(t, put, 1)
		require.Len(t, put[0].History, 1)
		require.False(t, put[0].Dead)
	}
}

func TestARange_IsReplayedOneAtATime(t *testing.T) {
	requests, err := domain.ReplayRequests(nil).Add(0, domain.ReplayRequest{ID: "a", Range: &domain.ReplayRange{}})
	require.NoError(t, err)
	_, err = requests.Add(0, domain.ReplayRequest{ID: "b", Range: &domain.ReplayRange{}})
	require.Equal(t, domain.Conflict, domain.KindOf(err))
	requests, err = requests.Add(1, domain.ReplayRequest{ID: "b", Range: &domain.ReplayRange{}})
	require.NoError(t, err, "the first request was carried out")
	require.Len(t, requests, 1)
	require.Equal(t, 2, requests[0].Number)
}
