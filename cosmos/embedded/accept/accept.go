// Package accept keeps a listener in service while the process lacks file descriptors or
// memory. During the shortage Accept fails, until other connections close. A server that stops at
// this error would stay down after the shortage.
package accept

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

const (
	minDelay = 5 * time.Millisecond
	maxDelay = time.Second
)

// temporaryErrors are errors of accept after which the listener still works. The first line lists shortages of
// descriptors or memory, which end when connections close. The second line lists errors of a single connection, which
// its client has closed.
var temporaryErrors = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EPROTO, syscall.EPERM,
	syscall.EINTR, syscall.EAGAIN, syscall.ETIMEDOUT,
	syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	syscall.ENOPROTOOPT, syscall.EOPNOTSUPP,
}

// Options configure Retry.
type Options struct {
	Logger *slog.Logger   // required
	Server string         // name of the server in log messages, such as "the bus"
	Random func() float64 // returns random numbers in [0, 1) for the jitter; default: math/rand
}

// Retry returns a listener that retries after temporary errors of l. Each consecutive error doubles the delay, up to
// one second; jitter reduces a delay by up to half. An error is logged at most once a minute. Only one goroutine may
// call Accept.
func Retry(l net.Listener, opts Options) net.Listener {
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &listener{Listener: l, opts: opts, ctx: ctx, cancel: cancel, logged: clock.Interval{Every: time.Minute}}
}

type listener struct {
	net.Listener
	opts   Options
	ctx    context.Context //nolint:containedctx // ends with Close
	cancel func()

	delay    time.Duration
	failures int // number of errors since the last log message
	logged   clock.Interval
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			l.delay = 0
			return conn, nil
		case l.ctx.Err() != nil:
			return nil, net.ErrClosed
		case !slices.ContainsFunc(temporaryErrors, func(temporary error) bool { return errors.Is(err, temporary) }):
			return nil, err
		}
		l.logAndWait(err)
	}
}

// logAndWait logs err, and waits until the delay has passed or the listener is closed.
func (l *listener) logAndWait(err error) {
	l.failures++
	if l.logged.TryStart(time.Now()) {
		l.opts.Logger.Warn("cannot accept connections to "+l.opts.Server+"; retrying", "address", l.Addr().String(), "failures", l.failures, "error", err) //nolint:sloglint // the text names the server
		l.failures = 0
	}
	l.delay = min(max(2*l.delay, minDelay), maxDelay)
	jitter := time.Duration(l.opts.Random() * float64(l.delay/2))
	_ = clock.Sleep(l.ctx, l.delay-jitter) // if the listener was closed, the next Accept returns an error
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.cancel()
	return l.Listener.Close()
}
