package hubclient

import (
	"context"
	"time"
)

// A Clock measures durations and waits. It does not depend on the system time, which may be
// changed.
type Clock interface {
	// Elapsed returns the time since a fixed start. It never decreases.
	Elapsed() time.Duration
	// Sleep returns nil after d. If ctx ends first, it returns the error of ctx.
	Sleep(ctx context.Context, d time.Duration) error
	// AfterFunc calls f in a new goroutine after d, unless stop is called first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// monotonicClock is the system's monotonic clock.
type monotonicClock struct{ start time.Time }

func (c monotonicClock) Elapsed() time.Duration { return time.Since(c.start) }

func (monotonicClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (monotonicClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
