package ingest

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestBackoff() *backoff {
	return newBackoff(func(count int) time.Duration { return time.Duration(count) * time.Minute })
}

func TestASessionWaitsFromTheThirdLostLinkOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBackoff()
		for range doubtful {
			require.Zero(t, b.suspected("a"))
			require.LessOrEqual(t, b.wait("a"), time.Duration(0))
		}
		for n := 1; n <= 3; n++ {
			require.Equal(t, n, b.suspected("a"))
			require.Equal(t, time.Duration(n)*time.Minute, b.wait("a"), "longer each time")
		}
		require.LessOrEqual(t, b.wait("b"), time.Duration(0), "others do not")
		b.forget("a")
		require.LessOrEqual(t, b.wait("a"), time.Duration(0))
		require.Zero(t, b.suspected("a"), "it is counted anew")
	})
}

func TestASessionWithADamagedMailboxWaitsFromTheFirstTimeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBackoff()
		require.Equal(t, 1, b.certain("a"))
		require.Equal(t, time.Minute, b.wait("a"))
		require.Equal(t, 2, b.certain("a"))
		require.Equal(t, 3, b.suspected("a"))
	})
}

func TestABackoffRemembersSoManySessions(t *testing.T) {
	b := newTestBackoff()
	for n := range watchedSessions + 10 {
		b.certain(strconv.Itoa(n))
	}
	require.Len(t, b.rows, watchedSessions)
	require.Positive(t, b.wait(strconv.Itoa(watchedSessions+9)))
}
