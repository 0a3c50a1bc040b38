package api

import (
	"context"
	"time"
)

// A peekTimer measures the time that the hub itself needs for a Peek. The duration of the request
// also includes waiting for data and for a domain.
type peekTimer struct {
	clock    func() time.Time
	start    time.Time // start of the current interval; zero while the Peek waits for a domain
	duration time.Duration
}

func startPeekTimer(clock func() time.Time) *peekTimer {
	return &peekTimer{clock: clock, start: clock()}
}

// stop returns the measured time, which excludes pauses.
func (t *peekTimer) stop() time.Duration {
	if !t.start.IsZero() {
		t.duration += t.clock().Sub(t.start)
		t.start = time.Time{}
	}
	return t.duration
}

// excludePause returns a [hub.PeekRequest.Pause] that calls pause. The timer excludes the time from
// this call until the call of the returned function.
func (t *peekTimer) excludePause(pause func() func(context.Context) error) func() func(context.Context) error {
	return func() func(context.Context) error {
		t.stop()
		resume := pause()
		return func(ctx context.Context) error {
			t.start = t.clock()
			return resume(ctx)
		}
	}
}
