package ingest

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestBackoff() *sessionBackoff {
	return newBackoff(func(count int) time.Duration { return time.Duration(count) * time.Minute })
}

func TestSession_WaitsAfterTheThirdLostLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBackoff()
		for range doubtful {
			require.Zero(t, b.addSuspected("a"))
			require.LessOrEqual(t, b.waitTime("a"), time.Duration(0))
		}
		for n := 1; n <= 3; n++ {
			require.Equal(t, n, b.addSuspected("a"))
			require.Equal(t, time.Duration(n)*time.Minute, b.waitTime("a"), "longer each time")
		}
		require.LessOrEqual(t, b.waitTime("b"), time.Duration(0), "others do not")
		b.forget("a")
		require.LessOrEqual(t, b.waitTime("a"), time.Duration(0))
		require.Zero(t, b.addSuspected("a"), "it is counted from the beginning")
	})
}

func TestSession_WaitsAfterTheFirstReportOfDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBackoff()
		require.Equal(t, 1, b.addCertain("a"))
		require.Equal(t, time.Minute, b.waitTime("a"))
		require.Equal(t, 2, b.addCertain("a"))
		require.Equal(t, 3, b.addSuspected("a"))
	})
}

func TestBackoff_LimitsTheTrackedSessions(t *testing.T) {
	b := newTestBackoff()
	for n := range watchedSessions + 10 {
		b.addCertain(strconv.Itoa(n))
	}
	require.Len(t, b.bySession, watchedSessions)
	require.Positive(t, b.waitTime(strconv.Itoa(watchedSessions+9)))
}
