package api

import (
	"context"
	"io"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// An admission bounds the bytes of all bodies that are in memory at the same
// time. A body takes its share as it arrives, a megabyte at a time, so a crowd of
// senders waits in its connections and not in the heap, and one that sends
// slowly holds no more than it has sent.
type admission struct {
	megabytes chan struct{}
	patience  time.Duration // with those who are in front
}

func newAdmission(bytes int64, patience time.Duration) *admission {
	return &admission{megabytes: make(chan struct{}, max(1, bytes/megabyte)), patience: patience}
}

// An admitted is a body of which no more is read than there is room for.
type admitted struct {
	io.Reader
	ctx   context.Context //nolint:containedctx // a Reader has nowhere else to get it from
	by    *admission
	taken int   // megabytes
	room  int64 // left in them
}

func (a *admission) admit(ctx context.Context, body io.Reader) *admitted {
	return &admitted{Reader: body, ctx: ctx, by: a}
}

// Read fails with Busy if there is no room in time. Then the sender comes again,
// and the others have it.
func (b *admitted) Read(p []byte) (int, error) {
	if b.room == 0 {
		if err := b.by.wait(b.ctx); err != nil {
			return 0, err
		}
		b.taken++
		b.room = megabyte
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.room)])
	b.room -= int64(n)
	return n, err
}

// leave gives back the room of a body whose events are stored or refused.
func (b *admitted) leave() {
	for ; b.taken > 0; b.taken-- {
		<-b.by.megabytes
	}
}

func (a *admission) wait(ctx context.Context) error {
	select {
	case a.megabytes <- struct{}{}:
		return nil
	default:
	}
	patience := time.NewTimer(a.patience)
	defer patience.Stop()
	select {
	case a.megabytes <- struct{}{}:
		return nil
	case <-patience.C:
		return domain.Errorf(domain.Busy, "the bodies of other requests take %d MB already", cap(a.megabytes))
	case <-ctx.Done():
		return domain.Errorf(domain.Busy, "while waiting for the bodies of other requests: %w", context.Cause(ctx))
	}
}
