// Package clock waits. It uses the timers of package time, so that it works in the
// bubbles of testing/synctest.
package clock

import (
	"context"
	"time"
)

// Sleep returns nil after d, or the error of ctx once that has ended.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
