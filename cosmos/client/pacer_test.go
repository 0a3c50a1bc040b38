package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPacer_WaitsUntilTheDebtIsPaidOff(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPacer(100, func() time.Time { return now })
	require.Zero(t, p.takePause())
	p.addCharge(50)
	now = now.Add(200 * time.Millisecond)
	require.Equal(t, 300*time.Millisecond, p.takePause())
	require.Zero(t, p.takePause(), "a clock that stands still delays a request once")
	p.addCharge(10)
	now = now.Add(time.Hour)
	require.Zero(t, p.takePause())
	p.addCharge(100)
	require.Equal(t, time.Second, p.takePause(), "what was not spent is no credit")
	p.addCharge(100)
	now = now.Add(-time.Hour)
	require.Equal(t, time.Second, p.takePause(), "a clock that is set back delays a request by its price")
}

func TestPacer_HalvesItsRateWhileRequestsAreThrottled(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPacer(100, func() time.Time { return now })
	require.Equal(t, 5, p.batchSize(10, 100))
	p.noteThrottled()
	p.noteThrottled()
	require.Equal(t, throttledPause, p.takePause())
	require.Equal(t, 2, p.batchSize(10, 100), "requests that are throttled together count once")
	for range 20 {
		now = now.Add(throttledPause)
		p.noteThrottled()
	}
	require.GreaterOrEqual(t, p.rate, 100*minRateShare)
	require.Less(t, p.rate, 5.)
	require.Equal(t, 1, p.batchSize(10, 100))
	now = now.Add(rateRecovery)
	require.Equal(t, 5, p.batchSize(10, 100))
	require.Equal(t, 3, p.batchSize(10, 3))
}
