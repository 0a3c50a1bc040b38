package api

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/domain"
)

// A limiter bounds the total amount of a resource that requests of one kind hold at the same time. If no
// room is left, a request waits for room, and fails with Busy after the timeout.
type limiter struct {
	room    *semaphore.Weighted
	timeout time.Duration // maximum wait of acquire
	full    string        // text of the Busy error
}

func newLimiter(room int64, timeout time.Duration, full string) *limiter {
	return &limiter{semaphore.NewWeighted(room), timeout, full}
}

// wait waits for room until ctx ends.
func (l *limiter) wait(ctx context.Context, n int64) error {
	if l.room.Acquire(ctx, n) != nil {
		return domain.Errorf(domain.Busy, "%s", l.full)
	}
	return nil
}
