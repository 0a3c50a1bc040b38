package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// failingListener is a net.Listener. Its Accept returns the errors first, then the connections sent to conns.
type failingListener struct {
	errs  chan error
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newFailingListener(errs ...error) *failingListener {
	l := &failingListener{errs: make(chan error, len(errs)), conns: make(chan net.Conn), done: make(chan struct{})}
	for _, err := range errs {
		l.errs <- err
	}
	return l
}

func (l *failingListener) Accept() (net.Conn, error) {
	select {
	case err := <-l.errs:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
	default:
	}
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *failingListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *failingListener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5672}
}

// requireAnswer dials l, and fails the test unless the server answers with the AMQP header.
func requireAnswer(t *testing.T, l *failingListener) {
	t.Helper()
	client, served := net.Pipe()
	l.conns <- served
	_, err := io.WriteString(client, "AMQP\x00\x01\x00\x00")
	require.NoError(t, err)
	header := make([]byte, 8)
	_, err = io.ReadFull(client, header)
	require.NoError(t, err)
	require.Equal(t, "AMQP\x00\x01\x00\x00", string(header))
	require.NoError(t, client.Close())
}

func TestServe_RetriesTemporaryErrorsOfAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n, err := embedded.Open(embedded.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Random: func() float64 { return 0 }})
		require.NoError(t, err)
		l := newFailingListener(syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.EMFILE)
		ctx, cancel := context.WithCancel(context.Background())
		served, began := make(chan error, 1), time.Now()
		go func() { served <- n.Serve(ctx, l, embedded.ServeOptions{}) }()
		requireAnswer(t, l)
		require.Equal(t, 75*time.Millisecond, time.Since(began), "5, 10, 20 and 40 ms")
		require.Equal(t, 1, strings.Count(log.String(), "cannot accept connections"), log.String())
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, n.Close())
	})
}

func TestServe_StopsDuringTheDelayOfAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := embedded.Open(embedded.Options{Random: func() float64 { return 0 }})
		require.NoError(t, err)
		errs := make([]error, 20)
		for i := range errs {
			errs[i] = syscall.EMFILE
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5500*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.NoError(t, n.Serve(ctx, newFailingListener(errs...), embedded.ServeOptions{}))
		require.Equal(t, 5500*time.Millisecond, time.Since(began), "a delay is up to a second")
		require.NoError(t, n.Close())
	})
}

func TestServe_FailsWithOtherErrorsOfAccept(t *testing.T) {
	n := openNamespace(t, embedded.Options{})
	broken := errors.New("the listener is broken")
	require.ErrorIs(t, n.Serve(t.Context(), newFailingListener(broken), embedded.ServeOptions{}), broken)
}
