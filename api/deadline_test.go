package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// These tests use the fake time of testing/synctest, in which waiting takes no real time and
// durations are exact. The server listens on net.Pipe, where a write waits until its bytes are
// read.

// A bubble is a server with fake time.
type bubble struct {
	t     *testing.T
	f     *hubFixture
	conns chan net.Conn
}

// inBubble runs test in fake time with a server. The server contains one bundle, whose body has
// size bytes.
func inBubble(t *testing.T, size int, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := serveBubble(t, newFixture(t))
		if size > 0 {
			payload := strings.Repeat("x", size)
			a := b.exchange(b.dial(), post(array(newEvent(1, "weight", 50_000, "payload", payload))))
			require.Equal(t, 202, a.StatusCode)
		}
		test(b)
	})
}

// serveBubble serves f in the fake time of the caller.
func serveBubble(t *testing.T, f *hubFixture, configure ...func(*http.Server)) *bubble {
	t.Helper()
	b := &bubble{t, f, make(chan net.Conn)}
	server := &http.Server{Handler: f.server.Handler()}
	for _, c := range configure {
		c(server)
	}
	polls := f.server.ParkPolls(server)
	stopped := make(chan error)
	go func() { stopped <- server.Serve(b) }()
	go func() { stopped <- server.Serve(polls) }()
	t.Cleanup(func() {
		f.server.SetDraining()
		require.NoError(t, server.Close())
		f.server.WaitForPolls(context.WithoutCancel(t.Context()))
		require.ErrorIs(t, <-stopped, http.ErrServerClosed)
		require.ErrorIs(t, <-stopped, http.ErrServerClosed)
		<-time.After(time.Second) // net/http waits this long before it closes a connection after a response with Connection: close
	})
	return b
}

// Accept, Close and Addr implement net.Listener.
func (b *bubble) Accept() (net.Conn, error) {
	conn, ok := <-b.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (b *bubble) Close() error   { close(b.conns); return nil }
func (b *bubble) Addr() net.Addr { return &net.TCPAddr{} }

// dial opens a connection, and closes it at the end of the test.
func (b *bubble) dial() net.Conn {
	client, server := net.Pipe()
	b.conns <- server
	b.t.Cleanup(func() { client.Close() })
	return client
}

// exchange sends text on conn, and reads the header of a response.
func (b *bubble) exchange(conn net.Conn, text string) *http.Response {
	b.t.Helper()
	go func() { _, _ = io.WriteString(conn, text) }()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(b.t, err)
	return resp
}

func post(body string) string {
	return "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
		chunk(body) + "0\r\n\r\n"
}

func chunk(s string) string { return strconv.FormatInt(int64(len(s)), 16) + "\r\n" + s + "\r\n" }

func TestAReaderThatStopsReadingIsCutOffAtTheDeadline(t *testing.T) {
	inBubble(t, 1<<20-2, func(b *bubble) {
		start := time.Now()
		conn := b.dial()
		resp := b.exchange(conn, peekRequest)
		require.Equal(b.t, 200, resp.StatusCode)
		b.f.logs.wait(b.t, `"status":"aborted"`)
		require.Equal(b.t, 30*time.Second, time.Since(start).Round(time.Second))
		_, err := io.ReadAll(resp.Body)
		require.Error(b.t, err, "the body must not look whole")
	})
}

func TestAReaderThatIsSlowGetsTheWholeBody(t *testing.T) {
	inBubble(t, 1<<20-2, func(b *bubble) {
		b.f.store.open = func(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
			r, err := b.f.store.Store.Open(ctx, s)
			return &blockedReader{r, ctx}, err
		}
		start := time.Now()
		resp := b.exchange(&slowConn{Conn: b.dial(), rate: 4 << 10}, peekRequest)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(b.t, err)
		require.Greater(b.t, n, int64(1<<20))
		require.Greater(b.t, time.Since(start), 4*time.Minute)
		b.f.logs.wait(b.t, `"route":"/v1/peek","status":"200"`)
	})
}

// A blockedReader waits until its context ends, and then fails as a network reader does.
type blockedReader struct {
	io.ReadCloser
	ctx context.Context
}

func (r *blockedReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}

func TestAReaderThatReadsTooSlowlyIsCutOff(t *testing.T) {
	inBubble(t, 1<<20-2, func(b *bubble) {
		start := time.Now()
		resp := b.exchange(&slowConn{Conn: b.dial(), rate: 1 << 10}, peekRequest)
		_, err := io.Copy(io.Discard, resp.Body)
		require.Error(b.t, err)
		require.Less(b.t, time.Since(start), 2*time.Minute)
	})
}

func TestPeek_CutsReadersBelowTheMinimumRate(t *testing.T) {
	inBubble(t, 1<<20-2, func(b *bubble) {
		start := time.Now()
		resp := b.exchange(&slowConn{Conn: b.dial(), rate: 3 << 10}, peekRequest)
		_, err := io.Copy(io.Discard, resp.Body)
		require.Error(b.t, err)
		require.Less(b.t, time.Since(start), 3*time.Minute)
		b.f.logs.wait(b.t, "too slowly")
	})
}

func TestNoBodyLastsLongerThanTwentyDeadlines(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		var sent []testEvent
		for n := range 4 {
			sent = append(sent, newEvent(n+1, "weight", 1024, "payload", strings.Repeat("x", 1<<20-2)))
		}
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(sent...))).StatusCode)
		start := time.Now()
		resp := b.exchange(&slowConn{Conn: b.dial(), rate: 4 << 10}, peekRequest) // at this rate, reading the whole body would take 17 minutes
		_, err := io.Copy(io.Discard, resp.Body)
		require.Error(b.t, err)
		require.Equal(b.t, 10*time.Minute, time.Since(start).Round(10*time.Second))
	})
}

// A slowConn is a connection that reads rate bytes per second.
type slowConn struct {
	net.Conn
	rate int
}

func (s *slowConn) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	return s.Conn.Read(p[:min(len(p), s.rate)])
}

// sendSlowly sends the start of a long body, and then n more bytes each second until stop is
// called.
func (b *bubble) sendSlowly(conn net.Conn, n int) (stop func()) {
	stopped := make(chan bool)
	go func() {
		defer close(stopped)
		_, err := io.WriteString(conn, "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n[")
		for err == nil {
			<-time.After(time.Second)
			_, err = io.WriteString(conn, strings.Repeat(" ", n))
		}
	}()
	return func() {
		require.NoError(b.t, conn.Close())
		<-stopped
	}
}

func TestUpload_IsRefusedAtTheDeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		rate int
		want time.Duration
	}{
		"below the minimum rate":     {1 << 10, 13 * time.Second}, // a third of the deadline, plus the time that the client gains by sending 1 KB/s
		"at more than that":          {5 << 10, 30 * time.Second},
		"when it stops after a byte": {0, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 0, func(b *bubble) {
				start := time.Now()
				conn := b.dial()
				defer b.sendSlowly(conn, tc.rate)()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(b.t, err)
				require.Equal(b.t, 408, resp.StatusCode)
				require.Equal(b.t, tc.want, time.Since(start).Round(time.Second))
			})
		})
	}
}

func TestDeadline_EndsWorkThatTakesTooLong(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		b.f.store.next = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		start := time.Now()
		require.Equal(b.t, 503, b.exchange(b.dial(), peekRequest).StatusCode)
		require.Equal(b.t, 30*time.Second, time.Since(start))

		b.f.store.save = func(ctx context.Context, _ domain.ActorID) error { <-ctx.Done(); return ctx.Err() }
		start = time.Now()
		require.Equal(b.t, 503, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		require.Equal(b.t, 30*time.Second, time.Since(start))
	})
}

// The server removes the read deadline of a body when the body has ended. Otherwise the deadline
// would interrupt the work, which looks like a disconnected client, or the next request.
func TestTheDeadlineOfABodyEndsWithIt(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		client, server := net.Pipe()
		watched := &watchedConn{Conn: server}
		b.conns <- watched
		defer client.Close()
		b.f.store.save = func(context.Context, domain.ActorID) error {
			if d := watched.deadline.Load().(time.Time); !d.IsZero() {
				b.t.Errorf("the connection is read until %v while the work is done", d)
			}
			return nil
		}
		for n := range 3 {
			resp := b.exchange(client, post(array(newEvent(n+1))))
			require.Equal(b.t, 202, resp.StatusCode)
			_, err := io.Copy(io.Discard, resp.Body)
			require.NoError(b.t, err)
			<-time.After(25 * time.Second)
		}
	})
}

// watchedConn records the last read deadline that was set.
type watchedConn struct {
	net.Conn
	deadline atomic.Value
}

func (w *watchedConn) SetReadDeadline(t time.Time) error {
	w.deadline.Store(t)
	return w.Conn.SetReadDeadline(t)
}
