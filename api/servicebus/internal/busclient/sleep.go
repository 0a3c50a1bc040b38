package busclient

import (
	"context"
	"errors"
	"time"
)

// Sleep waits for d, or until ctx ends. It returns false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Backoff returns the pause after a number of consecutive failures. It grows exponentially from 50
// ms to 30 s. Jitter shortens it by up to a half, so that clients that failed together do not retry
// together. random returns numbers in [0, 1).
func Backoff(failures int, random func() float64) time.Duration {
	const first, longest = 50 * time.Millisecond, 30 * time.Second
	d := longest
	if failures < 10 {
		d = min(longest, first<<max(0, failures-1))
	}
	return d - time.Duration(random()*float64(d)/2)
}

// ErrAtOnce requests an immediate stop when it is the cause of a context's end. Messages that are
// not settled return to the bus.
var ErrAtOnce = errors.New("end at once")

// WithGrace returns a context that ends when a grace period after the end of ctx has passed. If ctx
// ends with the cause [ErrAtOnce], there is no grace period. The caller must call stop to release
// the context.
func WithGrace(ctx context.Context, grace time.Duration) (work context.Context, stop func()) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), ErrAtOnce) {
			Sleep(work, grace)
		}
		cancel()
	})
	return work, func() {
		forget()
		cancel()
	}
}
