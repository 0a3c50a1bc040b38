package api

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPeekTimer_DoesNotCountTheWaitForADomain(t *testing.T) {
	now := time.Unix(1, 0)
	pass := func(d time.Duration) { now = now.Add(d) }
	timer := startPeekTimer(func() time.Time { return now })
	pass(2 * time.Second)
	pause := timer.excludePause(func() func(context.Context) error {
		return func(context.Context) error { pass(3 * time.Second); return nil } // this wait for a store slot is included in the measured time
	})
	resume := pause()
	pass(time.Minute)
	require.NoError(t, resume(t.Context()))
	pass(4 * time.Second)
	require.Equal(t, 9*time.Second, timer.stop())
	pass(time.Second)
	require.Equal(t, 9*time.Second, timer.stop())
}

func TestPeekTimer_EndsWithADomainThatFails(t *testing.T) {
	now := time.Unix(1, 0)
	timer := startPeekTimer(func() time.Time { return now })
	timer.excludePause(func() func(context.Context) error { return nil })()
	now = now.Add(time.Minute)
	require.Zero(t, timer.stop())
}
