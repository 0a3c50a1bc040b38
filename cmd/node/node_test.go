package node_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func settings(dir string) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.InMemory = "127.0.0.1:0", dir, dir == ""
	return cfg
}

// start runs a node until the test ends, or stop is called.
func start(t *testing.T, cfg config.Config, opts node.Options) (n *node.Node, stop func() error) {
	t.Helper()
	n, err := node.Open(t.Context(), cfg, opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var result error
	running.Go(func() { result = n.Run(ctx) })
	stop = func() error {
		cancel()
		running.Wait()
		http.DefaultClient.CloseIdleConnections()
		return result
	}
	t.Cleanup(func() { _ = stop() })
	return n, stop
}

// call sends a request and returns the status and the body.
func call(t *testing.T, method, url, actor, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

const event = `[{"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41","recipient":"a","origin":"Charges","contentType":"c",` +
	`"documentType":"d","supportsBundling":true,"weight":1,"payload":{"n":1}}]`

func TestWhatANodeKeepsIsThereForTheNextOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	n, stop := start(t, settings(dir), node.Options{})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 202, status, body)
	require.NoError(t, stop())
	for _, name := range []string{"lock", "cosmos/store.db", "content"} {
		_, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
	}

	n, stop = start(t, settings(dir), node.Options{})
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"payload":{"n":1}`)
	require.NoError(t, stop())
}

func TestANodeInMemoryLeavesNothingBehind(t *testing.T) {
	t.Chdir(t.TempDir())
	n, stop := start(t, settings(""), node.Options{})
	status, _ := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 202, status)
	require.NoError(t, stop())
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestANodeAnswersOperators(t *testing.T) {
	n, stop := start(t, settings(""), node.Options{})
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ready", "/openapi.json": `"openapi"`,
		"/metrics": "messagehub_cosmos_request_units_total",
	} {
		status, body := call(t, http.MethodGet, n.URL()+path, "", "")
		require.Equal(t, 200, status, path)
		require.Contains(t, body, want, path)
	}
	families, err := n.Gatherer().Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	require.NoError(t, stop())
}

func TestTheContentModesOfTheConfigurationAreThoseOfTheHub(t *testing.T) {
	cfg := settings("")
	n, stop := start(t, cfg, node.Options{})
	unpaid := strings.Replace(event, `,"payload":{"n":1}`, "", 1)
	status, _ := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", unpaid)
	require.Equal(t, 202, status)
	require.NoError(t, stop())

	domains, err := config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_DOMAINS=[{name: Charges, content: inline}, {name: New}]"}})
	require.NoError(t, err)
	cfg.Domains = domains.Domains
	n, stop = start(t, cfg, node.Options{})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", unpaid)
	require.Equal(t, 400, status, "an inline event needs a payload: %s", body)
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek/New", "a", "")
	require.Equal(t, 204, status, body)
	require.NoError(t, stop())
}

func TestTheLimitsOfTheConfigurationAreThoseOfTheServer(t *testing.T) {
	cfg := settings("")
	cfg.Limits = config.Limits{RequestBody: 1000, Payload: 6, Events: 1}
	n, stop := start(t, cfg, node.Options{})
	two := strings.Replace(event, "]", ","+event[1:], 1)
	status, _ := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", two)
	require.Equal(t, 413, status)
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 400, status)
	require.Contains(t, body, "payload: want at most 6 bytes, got 7")
	status, _ = call(t, http.MethodPost, n.URL()+"/v1/data-available", "", "["+strings.Repeat(" ", 1000)+"]")
	require.Equal(t, 413, status)
	require.NoError(t, stop())
}

func TestAnInvalidConfigIsRefusedAndTheListenerReleased(t *testing.T) {
	cfg := settings("")
	cfg.Listen = "0.0.0.0:0"
	_, err := node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "--insecure")

	dir := t.TempDir()
	n, stop := start(t, settings(dir), node.Options{})
	cfg = settings(dir)
	cfg.Listen = freeAddress(t)
	_, err = node.Open(t.Context(), cfg, node.Options{})
	require.EqualError(t, err, "data folder "+dir+": another process uses it; stop that one, or choose another folder with --data")
	cfg.InMemory, cfg.Data = true, ""
	_, second := start(t, cfg, node.Options{}) // the same address is free again
	require.NoError(t, second())
	require.NoError(t, stop())
	require.NotEmpty(t, n.Addr())
}

// freeAddress returns an address that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	n, err := node.Open(t.Context(), settings(""), node.Options{})
	require.NoError(t, err)
	require.NoError(t, n.Close())
	return n.Addr().String()
}

func TestANodeThatNeverRanCanBeClosed(t *testing.T) {
	dir := t.TempDir()
	n, err := node.Open(t.Context(), settings(dir), node.Options{})
	require.NoError(t, err)
	require.NoError(t, n.Close())
	require.NoError(t, n.Close(), "twice does no harm")
	_, stop := start(t, settings(dir), node.Options{})
	require.NoError(t, stop())
}

func TestWrappersSeeEveryRequest(t *testing.T) {
	var outer, inner atomic.Int64
	n, stop := start(t, settings(""), node.Options{
		WrapHandler: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				outer.Add(1)
				next.ServeHTTP(w, r)
			})
		},
		WrapTransport: func(next policy.Transporter) policy.Transporter { return counted{next, &inner} },
	})
	before := inner.Load()
	require.Positive(t, before, "the containers were made")
	status, _ := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 202, status)
	require.NoError(t, stop())
	require.EqualValues(t, 1, outer.Load())
	require.Greater(t, inner.Load(), before)
}

type counted struct {
	next policy.Transporter
	n    *atomic.Int64
}

func (c counted) Do(req *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.Do(req)
}

// hanging is a request that a test holds inside the node.
type hanging struct {
	inside  chan struct{}
	release chan struct{}
	cut     atomic.Bool // its context ended before it was released
}

func newHanging() *hanging {
	return &hanging{inside: make(chan struct{}), release: make(chan struct{})}
}

func (h *hanging) wrap(next http.Handler) http.Handler {
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
			<-h.release // whatever its reasons, it takes its time
		}
	})
}

func TestARequestUnderWayIsFinished(t *testing.T) {
	h := newHanging()
	draining := &said{text: "draining", done: make(chan struct{})}
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

// said is done when a text has been logged.
type said struct {
	text string
	done chan struct{}
}

func (s *said) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		close(s.done)
	}
	return len(p), nil
}

func TestARequestThatHangsIsCutOffAndTheStoreClosesAfterIt(t *testing.T) {
	h := newHanging()
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
	answering.Wait() // its connection is gone
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

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/"
}

func TestANodeSpeaksToAnAccountOverHTTP(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	server := serveHTTP(t, engine.Handler())
	cfg := settings(t.TempDir())
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = server, config.Secret(engine.Key())
	n, stop := start(t, cfg, node.Options{})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 202, status, body)
	require.NoError(t, stop())
	require.Positive(t, engine.Requests())
	_, err = os.Stat(filepath.Join(cfg.Data, "cosmos"))
	require.True(t, errors.Is(err, fs.ErrNotExist), "the account keeps the events")

	n, stop = start(t, cfg, node.Options{})
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "a", "")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"payload":{"n":1}`)
	require.NoError(t, stop())
}

func TestAWrongKeyIsSaidAtTheStart(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	cfg := settings(t.TempDir())
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = serveHTTP(t, engine.Handler()), "d3Jvbmc="
	_, err = node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "make sure of the containers")
	require.ErrorContains(t, err, "401")
	require.NotContains(t, err.Error(), "\n", "one line")
}

// refusing answers every write as the engine does once its disk is full.
type refusing struct {
	next policy.Transporter
	full *atomic.Bool
}

func (r refusing) Do(req *http.Request) (*http.Response, error) {
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
		WrapTransport: func(next policy.Transporter) policy.Transporter { return refusing{next, &full} },
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
