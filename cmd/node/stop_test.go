package node_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A blockingHandler blocks one request until the test releases it.
type blockingHandler struct {
	inside  chan struct{}
	release chan struct{}
	cut     atomic.Bool // cut means that the request's context ended before the request was released
}

func newBlockingHandler() *blockingHandler {
	return &blockingHandler{inside: make(chan struct{}), release: make(chan struct{})}
}

func (h *blockingHandler) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		close(h.inside)
		select {
		case <-h.release:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			h.cut.Store(true)
			<-h.release // continues after the context has ended, like a handler that ignores it
		}
	})
}

func TestARequestUnderWayIsFinished(t *testing.T) {
	h := newBlockingHandler()
	draining := &logWatcher{text: "draining", done: make(chan struct{})}
	n, stop := start(t, settings(""), node.Options{WrapHandler: h.wrap, Logger: slog.New(slog.NewTextHandler(draining, nil))})
	var answering sync.WaitGroup
	answering.Go(func() {
		status, _ := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
		if status != 202 {
			t.Errorf("status %d", status)
		}
	})
	<-h.inside
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	<-draining.done
	close(h.release)
	require.NoError(t, <-stopped)
	answering.Wait()
	require.False(t, h.cut.Load())
}

func TestAWaitingPeekDoesNotDelayTheEnd(t *testing.T) {
	waiting := make(chan struct{})
	n, stop := start(t, settings(""), node.Options{WrapTransport: func(next policy.Transporter) policy.Transporter {
		return &firstRequest{next: next, actor: "waiting", seen: waiting}
	}})
	var answering sync.WaitGroup
	answering.Go(func() {
		status, _ := call(t, http.MethodGet, n.URL()+"/v1/peek?wait=60s", "waiting", "")
		if status != 204 {
			t.Errorf("status %d", status)
		}
	})
	<-waiting // the Peek is waiting, or has already ended
	require.NoError(t, stop())
	answering.Wait()
}

// A firstRequest closes seen at the first request for a document of an actor.
type firstRequest struct {
	next  policy.Transporter
	actor string
	once  sync.Once
	seen  chan struct{}
}

func (f *firstRequest) Do(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.Header.Get("x-ms-documentdb-partitionkey"), f.actor) {
		f.once.Do(func() { close(f.seen) })
	}
	return f.next.Do(req)
}

// A logWatcher is a log writer that closes done when a line contains text.
type logWatcher struct {
	text string
	done chan struct{}
}

func (s *logWatcher) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		close(s.done)
	}
	return len(p), nil
}

func TestARequestThatHangsIsCutOffAndTheStoreClosesAfterIt(t *testing.T) {
	h := newBlockingHandler()
	var log syncBuffer
	dir := t.TempDir()
	n, stop := start(t, settings(dir), node.Options{
		WrapHandler: h.wrap, Grace: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	var answering sync.WaitGroup
	answering.Go(func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, n.URL()+"/v1/peek", nil)
		if err == nil {
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		if err == nil {
			t.Error("the request was answered")
		}
	})
	<-h.inside
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	answering.Wait() // the request has failed, because its connection was closed
	_, err := node.Open(t.Context(), settings(dir), node.Options{})
	require.ErrorContains(t, err, "another process uses it", "the handler is still inside")
	close(h.release)
	require.NoError(t, <-stopped)
	require.True(t, h.cut.Load())
	require.Contains(t, log.String(), "requests under way were cut off")
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A fullDisk answers every write as the embedded engine does on a full disk.
type fullDisk struct {
	next policy.Transporter
	full *atomic.Bool
}

func (r fullDisk) Do(req *http.Request) (*http.Response, error) {
	if !r.full.Load() || req.Method == http.MethodGet {
		return r.next.Do(req)
	}
	body := `{"code":"InternalServerError","message":"` + disk.ErrBroken.Error() + `: ` + disk.ErrFull.Error() + ` (write: no space left on device)"}`
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}, nil
}

func TestANodeWhoseDiskIsFullEndsAndSaysWhy(t *testing.T) {
	dir := t.TempDir()
	var full atomic.Bool
	n, err := node.Open(t.Context(), settings(dir), node.Options{
		WrapTransport: func(next policy.Transporter) policy.Transporter { return fullDisk{next, &full} },
	})
	require.NoError(t, err)
	var result error
	var running sync.WaitGroup
	running.Go(func() { result = n.Run(context.Background()) })
	full.Store(true)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL()+"/v1/data-available", strings.NewReader(event))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		require.NotEqual(t, http.StatusAccepted, resp.StatusCode)
		resp.Body.Close()
	}
	running.Wait()
	http.DefaultClient.CloseIdleConnections()
	require.EqualError(t, result, "data folder "+dir+": the disk is full; make room and restart (write: no space left on device)")
}
