package accept_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/accept"
)

// A failingListener returns the errors in errs one by one, then accepts. A nil error stands for an accepted connection.
type failingListener struct {
	errs   []error
	closed atomic.Bool
}

func (l *failingListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 && l.errs[0] != nil {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
	}
	l.errs = l.errs[min(1, len(l.errs)):]
	conn, _ := net.Pipe()
	return conn, nil
}

func (l *failingListener) Close() error {
	l.closed.Store(true)
	return nil
}

func (l *failingListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// newRetrying returns a Retry listener, the listener below it (which returns errs), and the log.
func newRetrying(random float64, errs ...error) (net.Listener, *failingListener, *bytes.Buffer) {
	var log bytes.Buffer
	inner := &failingListener{errs: errs}
	return accept.Retry(inner, accept.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Server: "the test", Random: func() float64 { return random },
	}), inner, &log
}

func TestRetry_DoublesItsDelayAndLogsOnceAMinute(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 75 * time.Millisecond, 1: 37500 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			l, _, log := newRetrying(random, syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOMEM, nil, syscall.EMFILE)
			began := time.Now()
			_, err := l.Accept()
			require.NoError(t, err)
			require.Equal(t, want, time.Since(began), "5, 10, 20 and 40 ms")
			_, err = l.Accept()
			require.NoError(t, err)
			require.Less(t, time.Since(began), want+6*time.Millisecond, "a connection resets the delay")
			require.Equal(t, 1, strings.Count(log.String(), "cannot accept connections to the test; retrying"), log.String())
		})
	}
}

func TestRetry_DelaysUpToASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := make([]error, 68)
		for i := range errs {
			errs[i] = syscall.EMFILE
		}
		l, _, log := newRetrying(0, errs...)
		began := time.Now()
		_, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, 61275*time.Millisecond, time.Since(began), "1275 ms for the first 8, a second for each of the 60 others")
		require.Equal(t, 2, strings.Count(log.String(), "cannot accept"), log.String())
		require.Contains(t, log.String(), "failures=1 ")
	})
}

func TestRetry_StopsWhenItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, inner, _ := newRetrying(0, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE)
		began := time.Now()
		closing := time.AfterFunc(12*time.Millisecond, func() { _ = l.Close() })
		defer closing.Stop()
		_, err := l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		require.Equal(t, 12*time.Millisecond, time.Since(began))
		synctest.Wait() // for Close
		require.True(t, inner.closed.Load())
	})
}

func TestRetry_ReturnsOtherErrors(t *testing.T) {
	broken := errors.New("the listener is broken")
	l, _, log := newRetrying(0, broken)
	_, err := l.Accept()
	require.ErrorIs(t, err, broken)
	require.Empty(t, log.String())
}
