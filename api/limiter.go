package api

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/domain"
)

// A limiter limits the total amount of a resource that requests of one kind hold at the same time.
// If too little is free, a request waits, and fails with Busy after the timeout.
type limiter struct {
	room    *semaphore.Weighted
	timeout time.Duration // maximum wait of acquire
	full    string        // text of the Busy error
}

func newLimiter(room int64, timeout time.Duration, full string) *limiter {
	return &limiter{semaphore.NewWeighted(room), timeout, full}
}

// wait waits until n units are free, or ctx ends.
func (l *limiter) wait(ctx context.Context, n int64) error {
	if l.room.Acquire(ctx, n) != nil {
		return domain.Errorf(domain.Busy, "%s", l.full)
	}
	return nil
}
