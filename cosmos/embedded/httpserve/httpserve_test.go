package httpserve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
)

// A testListener returns the errors in errs, then accepts the connections that dialPipe opens.
type testListener struct {
	errs  []error
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener(errs ...error) *testListener {
	return &testListener{errs: errs, conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *testListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *testListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *testListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (l *testListener) dialPipe() net.Conn {
	near, far := net.Pipe()
	l.conns <- far
	return near
}

// sendRequest sends a request on conn, and returns the response or the error.
func sendRequest(conn net.Conn) (*http.Response, error) {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer, errors.Join(err, answer.Body.Close())
}

// slowHandler returns a handler that responds after d, or earlier if its context ends.
func slowHandler(d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done():
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

// stopDuringRequest ends the context of Serve one second after a request began. It returns the status of the response
// (0 if none exists) and how long Serve took to return.
func stopDuringRequest(t *testing.T, opts httpserve.Options) (status int, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l, served := newPipeListener(), make(chan error, 1)
		go func() { served <- httpserve.Serve(ctx, l, opts) }()
		idle, conn := l.dialPipe(), l.dialPipe()
		answered := make(chan int, 1)
		go func() {
			answer, err := sendRequest(conn)
			if err != nil {
				answered <- 0
				return
			}
			answered <- answer.StatusCode
		}()
		began := time.Now()
		require.NoError(t, <-served)
		status, took = <-answered, time.Since(began)-time.Second
		_, err := idle.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "idle connections are closed")
		require.NoError(t, conn.Close())
	})
	return status, took
}

func TestServe_EndsImmediatelyWithoutGrace(t *testing.T) {
	status, took := stopDuringRequest(t, httpserve.Options{Handler: slowHandler(time.Hour)})
	require.Zero(t, status)
	require.Zero(t, took)
}

func TestServe_LetsRequestsCompleteInItsGrace(t *testing.T) {
	status, took := stopDuringRequest(t, httpserve.Options{Handler: slowHandler(4 * time.Second), Grace: 10 * time.Second, CancelAfter: 5 * time.Second})
	require.Equal(t, http.StatusNoContent, status)
	require.GreaterOrEqual(t, took, 3*time.Second)
	require.Less(t, took, 10*time.Second)
}

func TestServe_CancelsRequestsInItsGrace(t *testing.T) {
	status, took := stopDuringRequest(t, httpserve.Options{Handler: slowHandler(time.Hour), Grace: 10 * time.Second, CancelAfter: time.Second})
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Less(t, took, 10*time.Second)
}

func TestServe_ClosesRequestsThatExceedItsGrace(t *testing.T) {
	blocked := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-time.After(time.Minute) })
	status, took := stopDuringRequest(t, httpserve.Options{Handler: blocked, Grace: 10 * time.Second, CancelAfter: time.Second})
	require.Zero(t, status)
	require.Equal(t, 59*time.Second, took, "Serve waits for its handlers")
}

func TestServe_ReportsConnectionsOverTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l, served := newPipeListener(syscall.EMFILE), make(chan error, 1)
		entered, release := make(chan struct{}), make(chan struct{})
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if connlimit.OverLimit(r.Context()) {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			close(entered)
			<-release
		})
		go func() { served <- httpserve.Serve(ctx, l, httpserve.Options{Handler: handler, MaxConnections: 1}) }()
		first, second := l.dialPipe(), net.Conn(nil)
		answered := make(chan *http.Response, 1)
		go func() {
			answer, err := sendRequest(first)
			if err == nil {
				answered <- answer
			}
			close(answered)
		}()
		<-entered
		second = l.dialPipe()
		answer, err := sendRequest(second)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		close(release)
		require.Equal(t, http.StatusOK, (<-answered).StatusCode)
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, errors.Join(first.Close(), second.Close()))
	})
}

func TestServe_ReturnsTheErrorOfItsListener(t *testing.T) {
	broken := errors.New("the listener is broken")
	require.ErrorIs(t, httpserve.Serve(t.Context(), newPipeListener(broken), httpserve.Options{Handler: slowHandler(0)}), broken)
}

func TestServe_EncryptsWithACertificate(t *testing.T) {
	cert, err := certificate.New("localhost")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "cert")
	require.NoError(t, cert.Write(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(text))
	// The test uses TCP and real time, because closing a TLS connection blocks on a mutex, and synthetic time does not
	// advance during that.
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- httpserve.Serve(ctx, l, httpserve.Options{Handler: slowHandler(0), TLS: cert.Config()})
	}()
	plain, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	conn := tls.Client(plain, &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12})
	answer, err := sendRequest(conn)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, answer.StatusCode)
	cancel()
	require.NoError(t, <-served)
	_ = conn.Close() // the server has closed the connection
}
