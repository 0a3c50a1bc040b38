package api

import (
	"context"
	"io"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/domain"
)

// An admission bounds what is in memory at the same time for all requests of a
// kind. Who finds no room waits for a while, and is then asked to come again.
type admission struct {
	room     *semaphore.Weighted
	patience time.Duration // with those who are in front
	full     string        // says what takes the room
}

func newAdmission(room int64, patience time.Duration, full string) *admission {
	return &admission{semaphore.NewWeighted(room), patience, full}
}

// take waits for room, or fails with Busy.
func (a *admission) take(ctx context.Context, n int64) error {
	if a.room.TryAcquire(n) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	if a.room.Acquire(waiting, n) != nil {
		return domain.Errorf(domain.Busy, "%s", a.full)
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
	by    *admission
	read  int64
	taken int64
}

func (a *admission) admit(ctx context.Context, body io.Reader) *admitted {
	return &admitted{Reader: body, ctx: ctx, by: a}
}

// Read fails with Busy if there is no room in time for what has arrived. Then the
// sender comes again, and the others have it.
func (b *admitted) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p[:min(len(p), freeBytes)])
	b.read += int64(n)
	if b.read > b.taken+freeBytes {
		if err := b.by.take(b.ctx, freeBytes); err != nil {
			return 0, err
		}
		b.taken += freeBytes
	}
	return n, err
}

// leave gives back the room of a body whose events are stored or refused.
func (b *admitted) leave() { b.by.room.Release(b.taken) }
