package api

import (
	"context"
	"io"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/domain"
)

// A limiter bounds what all requests of a kind hold at the same time. A request that
// finds no room waits up to timeout, and then fails with Busy.
type limiter struct {
	room    *semaphore.Weighted
	timeout time.Duration
	full    string // the text of the error
}

func newLimiter(room int64, timeout time.Duration, full string) *limiter {
	return &limiter{semaphore.NewWeighted(room), timeout, full}
}

// acquire waits for room, or fails with Busy.
func (l *limiter) acquire(ctx context.Context, n int64) error {
	if l.room.TryAcquire(n) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.wait(ctx, n)
}

// wait is acquire without a timeout.
func (l *limiter) wait(ctx context.Context, n int64) error {
	if l.room.Acquire(ctx, n) != nil {
		return domain.Errorf(domain.Busy, "%s", l.full)
	}
	return nil
}

// freeBytes is how much of a body needs no room: whoever sends little, or
// nothing at all, takes nothing from the others.
const freeBytes = 64 * kilobyte

// An admitted is a body that takes room as it arrives, a piece at a time.
type admitted struct {
	io.Reader
	ctx   context.Context //nolint:containedctx // a Reader has nowhere else to get it from
	by    *limiter
	read  int64
	taken int64
}

func (l *limiter) admit(ctx context.Context, body io.Reader) *admitted {
	return &admitted{Reader: body, ctx: ctx, by: l}
}

// Read fails with Busy if there is no room in time for what has arrived. Then the
// sender comes again, and the others have it.
func (b *admitted) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p[:min(len(p), freeBytes)])
	b.read += int64(n)
	if b.read > b.taken+freeBytes {
		if err := b.by.acquire(b.ctx, freeBytes); err != nil {
			return 0, err
		}
		b.taken += freeBytes
	}
	return n, err
}

// leave gives back the room of a body whose events are stored or refused.
func (b *admitted) leave() { b.by.room.Release(b.taken) }
