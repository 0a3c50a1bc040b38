package brokerclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits of the pauses between repetitions.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// repeatUntilDone calls send until it succeeds, fails permanently, or the budget is used up.
func (c *Client) repeatUntilDone(ctx context.Context, isOnce bool, send func() (*apiAnswer, error)) (*apiAnswer, error) {
	end := time.Now().Add(c.opts.Budget)
	for n, pause := 1, minPause; ; n, pause = n+1, min(2*pause, maxPause) {
		a, err := send()
		if err == nil || ctx.Err() != nil || !mayRepeat(err, isOnce) {
			return a, err
		}
		wait := pause/2 + time.Duration(c.opts.Jitter()*float64(pause))
		if p, ok := errors.AsType[*Problem](err); ok {
			wait += p.RetryAfter
		}
		if time.Until(end) < wait {
			if n > 1 {
				err = fmt.Errorf("the request was sent %d times in %s: %w", n, c.opts.Budget, err)
			}
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w, before the request was repeated: %w", context.Cause(ctx), err)
		}
	}
}

// mayRepeat reports whether a failed request should be repeated. If isOnce is true, it returns true
// only if the hub has certainly not begun the request.
func mayRepeat(err error, isOnce bool) bool {
	if p, ok := errors.AsType[*Problem](err); ok {
		switch p.Status {
		case http.StatusTooManyRequests:
			return true
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return !isOnce
		}
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return !dns.IsNotFound
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true // the request was never sent
	}
	return !isOnce
}
