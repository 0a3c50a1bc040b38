package embedded

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

const (
	minAcceptDelay = 5 * time.Millisecond
	maxAcceptDelay = time.Second
)

// temporaryErrors are failures of accept after which the listener still works.
// A lack of descriptors or memory ends when other connections close; the others
// concern one connection that its client has given up.
var temporaryErrors = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPROTO, syscall.EPERM,
	syscall.EINTR, syscall.EAGAIN, syscall.ETIMEDOUT,
	syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	syscall.ENOPROTOOPT, syscall.EOPNOTSUPP,
}

func isTemporary(err error) bool {
	for _, temporary := range temporaryErrors {
		if errors.Is(err, temporary) {
			return true
		}
	}
	return false
}

// An acceptBackoff delays accept after temporary errors. Each consecutive error
// doubles the delay, and jitter halves it at most.
type acceptBackoff struct {
	random func() float64
	logger *slog.Logger

	delay    time.Duration
	failures int // since the last log entry
	logged   logInterval
}

// wait logs err at most once in a minute and returns after the delay,
// or when ctx ends.
func (b *acceptBackoff) wait(ctx context.Context, address net.Addr, err error) {
	b.failures++
	if b.logged.isDue(time.Now()) {
		b.logger.Warn("cannot accept connections to the bus; retrying", "address", address.String(), "failures", b.failures, "error", err)
		b.failures = 0
	}
	b.delay = min(max(2*b.delay, minAcceptDelay), maxAcceptDelay)
	jitter := time.Duration(b.random() * float64(b.delay/2))
	_ = clock.Sleep(ctx, b.delay-jitter)
}

// reset records that a connection was accepted.
func (b *acceptBackoff) reset() { b.delay = 0 }

// accept serves the connections of listener until it is closed or fails for
// good. Temporary errors are retried.
func (s *serving) accept(listener net.Listener) error {
	backoff := acceptBackoff{random: s.namespace.options.Random, logger: s.namespace.options.Logger}
	for {
		nc, err := listener.Accept()
		switch {
		case err == nil:
			backoff.reset()
			s.admit(nc)
		case s.ctx.Err() != nil:
			return net.ErrClosed
		case !isTemporary(err):
			return err
		default:
			backoff.wait(s.ctx, listener.Addr(), err)
		}
	}
}
