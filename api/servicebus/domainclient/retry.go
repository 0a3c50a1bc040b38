package domainclient

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// The pause between attempts starts at shortestPause and doubles up to longestPause.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
)

// A patience calculates the pauses between attempts, and decides when to stop.
type patience struct {
	random  io.Reader // for jitter
	next    time.Duration
	refused int // number of consecutive errors with the reason Unauthorized
}

func (c *Client) newPatience() patience { return patience{random: c.o.Random} }

// endsWith reports whether attempts after err are useless. It allows a few attempts after the bus
// refuses access: if several callers share a lost connection, Microsoft's client may open a link on
// the next connection before it has sent its token.
func (p *patience) endsWith(err error) bool {
	const enough = 3
	failure := busclient.Classify(err)
	switch {
	case errors.Is(err, ErrClosed):
		return true
	case !failure.Permanent:
		p.refused = 0
		return false
	case failure.Reason != busclient.Unauthorized:
		return true
	}
	p.refused++
	return p.refused >= enough
}

// wait doubles the pause, up to longestPause, and sleeps for it with jitter. It returns false if ctx
// ends first.
func (p *patience) wait(ctx context.Context) bool {
	p.next = min(max(2*p.next, shortestPause), longestPause)
	return busclient.Sleep(ctx, p.next/2+p.jitter(p.next/2))
}

// jitter returns a random duration up to limit, so that clients that failed together do not retry
// together.
func (p *patience) jitter(limit time.Duration) time.Duration {
	var b [8]byte
	if _, err := io.ReadFull(p.random, b[:]); err != nil {
		return 0 // if the random source fails, the pause has no jitter
	}
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(limit+1)) //nolint:gosec // limit is positive, and so is what is less
}

// retryUntilDone calls try until try succeeds, fails permanently, or ctx ends.
func (c *Client) retryUntilDone(ctx context.Context, what string, try func() error) error {
	p := c.newPatience()
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			if !errors.Is(err, ctx.Err()) {
				err = fmt.Errorf("%w: %w", ctx.Err(), err)
			}
			return fmt.Errorf("%w; it is not known whether the last try arrived, and sending the same again is safe", err)
		case p.endsWith(err):
			return err
		}
		c.o.Logger.Warn("trying again", "doing", what, "error", err)
		if !p.wait(ctx) {
			return errors.Join(ctx.Err(), err)
		}
	}
}
