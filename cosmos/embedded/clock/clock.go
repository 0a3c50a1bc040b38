// Package clock waits with a context and limits the frequency of actions. It uses the timers of
// package time, so it works in the bubbles of testing/synctest.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d and returns nil. If ctx ends first, it returns ctx.Err().
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
