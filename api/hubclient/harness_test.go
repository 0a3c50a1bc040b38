package hubclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/hubclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const actor = "5790001330552"

// A testClock advances immediately when Sleep is called. Its timers expire only if a test calls
// expireNext.
type testClock struct {
	mu      sync.Mutex
	now     time.Duration
	slept   []time.Duration
	expires bool // whether the next timer expires immediately
}

func (c *testClock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.now += d
		c.slept = append(c.slept, d)
	}
	return ctx.Err()
}

func (c *testClock) AfterFunc(_ time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expires {
		c.expires = false
		f()
	}
	return func() bool { return true }
}

// expireNext makes the next timer expire as soon as it is started.
func (c *testClock) expireNext() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expires = true
}

func (c *testClock) pauses() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.slept...)
}

// A faultyHub responds to each request with its next step. If a request arrives after the last
// step, the test fails.
type faultyHub struct {
	t      *testing.T
	client *hubclient.Client
	clock  *testClock
	steps  []hubStep
	seen   []string // method and URI of each request
	mu     sync.Mutex
}

type hubStep func(w http.ResponseWriter, r *http.Request)

// newFaultyHub starts a hub with steps. Its client creates the ids bundle-1, bundle-2 and so on,
// and uses no jitter.
func newFaultyHub(t *testing.T, steps ...hubStep) *faultyHub {
	return newFaultyHubWith(t, hubclient.Options{}, steps...)
}

func newFaultyHubWith(t *testing.T, opts hubclient.Options, steps ...hubStep) *faultyHub {
	h := &faultyHub{t: t, steps: steps, clock: new(testClock)}
	server := httptest.NewServer(h)
	ids := 0
	opts.URL, opts.Clock, opts.Jitter = server.URL, h.clock, func() float64 { return 0 }
	opts.NewID = func() string { ids++; return fmt.Sprintf("bundle-%d", ids) }
	client, err := hubclient.New(opts)
	require.NoError(t, err)
	h.client = client
	t.Cleanup(func() {
		client.Close()
		server.Close()
		require.Empty(t, h.steps, "steps without a request")
	})
	return h
}

func (h *faultyHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.seen = append(h.seen, r.Method+" "+r.URL.RequestURI())
	if len(h.steps) == 0 {
		h.mu.Unlock()
		h.t.Errorf("unexpected request %s %s", r.Method, r.URL)
		http.Error(w, "unexpected", http.StatusTeapot)
		return
	}
	next := h.steps[0]
	h.steps = h.steps[1:]
	h.mu.Unlock()
	next(w, r)
}

// requests returns the method and URI of each request so far.
func (h *faultyHub) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.seen...)
}

// problem returns a step that responds with a problem and with headers.
func problem(status int, headers ...string) hubStep {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"urn:messagehub:problem:x","title":"A problem","status":%d,"detail":"A detail.","instance":"urn:messagehub:request:R"}`, status)
	}
}

// bundle returns a step that sends the first n bytes of a body. If n is less than the size of the
// body, the step then closes the connection.
func bundle(id, body string, n int) hubStep { return taggedBundle(id, `"t"`, body, n) }

func taggedBundle(id, tag, body string, n int) hubStep {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("MessageId", id)
		h.Set("Content-Type", "application/json")
		if tag != "" {
			h.Set("ETag", tag)
		}
		rest, status := body, http.StatusOK
		if from, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && r.Header.Get("If-Range") == tag {
			start, _ := strconv.Atoi(strings.TrimSuffix(from, "-"))
			rest, status = body[start:], http.StatusPartialContent
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(body)-1, len(body)))
			n -= start
		}
		h.Set("Content-Length", strconv.Itoa(len(rest)))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(rest[:min(n, len(rest))]))
		if n < len(rest) {
			abortBody(w, r)
		}
	}
}

// abortBody closes the connection without finishing the response.
func abortBody(w http.ResponseWriter, _ *http.Request) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// dropConnection closes the connection without a response.
func dropConnection(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func ok(http.ResponseWriter, *http.Request) {}

func noData(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// isStatus reports whether err is a problem with the given status.
func isStatus(err error, status int) bool {
	p, ok := errors.AsType[*hubclient.Problem](err)
	return ok && p.Status == status
}

// jump moves the clock by d, as a real monotonic clock never does.
func (c *testClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
}
