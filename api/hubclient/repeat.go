package hubclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits of the random pauses between attempts. A Retry-After is added to the pause.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// A backoff returns pauses that grow up to a limit.
type backoff struct {
	client *Client
	limit  time.Duration
	next   time.Duration // next pause; 0 before the first one
}

// nextPause returns the next pause: a random time, plus the Retry-After if err is a Problem.
func (b *backoff) nextPause(err error) time.Duration {
	b.next = min(max(b.next, minPause), b.limit)
	pause := b.next/2 + time.Duration(b.client.opts.Jitter()*float64(b.next/2))
	b.next *= 2
	if p, ok := errors.AsType[*Problem](err); ok {
		pause += p.RetryAfter
	}
	return pause
}

func (b *backoff) reset() { b.next = 0 }

// repeatUntilDone calls try until it succeeds, fails permanently, or the budget is exhausted.
func (c *Client) repeatUntilDone(ctx context.Context, budget time.Duration, try func() error) error {
	end := c.opts.Clock.Elapsed() + budget
	pauses := backoff{client: c, limit: maxPause}
	for n := 1; ; n++ {
		err := try()
		if err == nil || ctx.Err() != nil || !isTemporary(err) {
			return err
		}
		pause := pauses.nextPause(err)
		if c.opts.Clock.Elapsed()+pause > end {
			if n > 1 {
				err = fmt.Errorf("the request was sent %d times in %s: %w", n, budget, err)
			}
			return err
		}
		if c.opts.OnRetry != nil && !c.opts.OnRetry(err, pause) {
			return &finalError{err}
		}
		if ended := c.opts.Clock.Sleep(ctx, pause); ended != nil {
			return fmt.Errorf("%w, before the request was repeated: %w", ended, err)
		}
	}
}

// isTemporary reports whether the same request may succeed after err.
func isTemporary(err error) bool {
	if _, ok := errors.AsType[*finalError](err); ok {
		return false
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.IsTemporary()
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*tokenError](err); ok {
		return false
	}
	if errors.Is(err, http.ErrSchemeMismatch) { // the URL has the scheme https, but the server uses http
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return !dns.IsNotFound
	}
	return true
}

// isUncertain reports whether the hub may have executed a request that failed with err.
func isUncertain(err error) bool {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status >= 500
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	_, isOfToken := errors.AsType[*tokenError](err)
	return !isOfToken
}

// A finalError wraps an error after which the request is not repeated.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }
