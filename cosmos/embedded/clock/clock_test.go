package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

func TestSleep_ReturnsAfterTheDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, clock.Sleep(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))
		require.NoError(t, clock.Sleep(t.Context(), 0))
		require.NoError(t, clock.Sleep(t.Context(), -time.Second))
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestSleep_ReturnsWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, clock.Sleep(ctx, time.Minute), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, clock.Sleep(ctx, 0), context.DeadlineExceeded, "it has ended before")
	})
}

func TestInterval_StartsOnceInItsTime(t *testing.T) {
	i, began := clock.Interval{Every: time.Minute}, time.Unix(0, 0)
	require.True(t, i.TryStart(began))
	require.False(t, i.TryStart(began.Add(59*time.Second)))
	require.True(t, i.TryStart(began.Add(time.Minute)))
	require.False(t, i.TryStart(began.Add(time.Minute)))
}
