package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// adminToken is the operators' token of nodes in tests. If a token is
// configured, a node creates no token file.
const adminToken = "a-token-for-operators"

func settings(dir string) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.InMemory = "127.0.0.1:0", dir, dir == ""
	cfg.BusListen, cfg.BlobListen = "", ""
	cfg.Admin.Token = adminToken
	return cfg
}

func TestDefault_EqualsTheDefaultOfTheRepository(t *testing.T) {
	require.Equal(t, cosmos.DefaultTailEvents, config.Default().Cosmos.TailEvents)
	require.EqualValues(t, cosmos.DefaultSweepUnits, config.Default().Cosmos.SweepUnits)
}

// start runs a node until stop is called or the test ends.
func start(t testing.TB, cfg config.Config, opts node.Options) (n *node.Node, stop func() error) {
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

// call sends a request as an actor, and returns the status and body of the
// response.
func call(t testing.TB, method, url, actor, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.Contains(url, "/v1/admin/") {
		req.Header.Set("Authorization", "Bearer "+adminToken)
	}
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

const event = `[{"id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41","recipient":"a","origin":"Charges","contentType":"c",` +
	`"documentType":"d","supportsBundling":true,"weight":1,"payload":{"n":1}}]`

func TestANode_ReadsWhatAnEarlierNodeStored(t *testing.T) {
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
	problems, err := testutil.GatherAndLint(n.Gatherer())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, stop())
}

func TestMetrics_NameTheBuildAndTimeTheStore(t *testing.T) {
	n, _ := start(t, settings(""), node.Options{Version: "v1.2.3", Revision: "4ec0aa1"})
	_, body := call(t, http.MethodGet, n.URL()+"/metrics", "", "")
	require.Regexp(t, `(?m)^messagehub_build_info\{goversion="go1[^"]+",revision="4ec0aa1",version="v1.2.3"\} 1$`, body)
	require.Regexp(t, `(?m)^messagehub_cosmos_request_duration_seconds_count\{container="catalog",operation="adopt groups"\} [1-9]`, body)
	require.Regexp(t, `(?m)^messagehub_cosmos_request_duration_seconds_count\{container="bundles",operation="peek"\} [1-9]`, body)
}

func TestTheHub_HasTheContentModesOfTheConfiguration(t *testing.T) {
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

func TestTheStore_HasTheOrderingOfTheConfiguration(t *testing.T) {
	for ordering, bundles := range map[domain.Ordering]int{domain.ByCabinet: 2, domain.ByRecipient: 3} {
		cfg := settings("")
		cfg.Ordering = ordering
		n, stop := start(t, cfg, node.Options{})
		for i, contentType := range []string{"a", "b", "a"} {
			status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", fmt.Sprintf(
				`[{"id":"00000000-0000-4000-8000-00000000000%d","recipient":"a","origin":"Charges","contentType":%q,`+
					`"documentType":"d","supportsBundling":true,"weight":1}]`, i+1, contentType))
			require.Equal(t, 202, status, body)
		}
		got := 0
		for ; ; got++ {
			status, _ := call(t, http.MethodGet, n.URL()+"/v1/peek?bundleId="+fmt.Sprintf("00000000-0000-4000-8000-%012d", got+1), "a", "")
			if status == 204 {
				break
			}
			require.Equal(t, 200, status)
			status, _ = call(t, http.MethodDelete, n.URL()+"/v1/dequeue/"+fmt.Sprintf("00000000-0000-4000-8000-%012d", got+1), "a", "")
			require.Equal(t, 200, status)
		}
		require.Equal(t, bundles, got)
		require.NoError(t, stop())
	}
}

func TestTheServer_HasTheLimitsOfTheConfiguration(t *testing.T) {
	cfg := settings("")
	cfg.Limits.RequestBody, cfg.Limits.Payload, cfg.Limits.Events = 1000, 6, 1
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
	_, second := start(t, cfg, node.Options{}) // the address is free again after the failed Open
	require.NoError(t, second())
	require.NoError(t, stop())
	require.NotEmpty(t, n.Addr())
}

// freeAddress returns an address at which no program currently listens.
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

func TestAWrongKeyIsReportedAtTheStart(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	cfg := settings(t.TempDir())
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = serveHTTP(t, engine.Handler()), "d3Jvbmc="
	_, err = node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "check the containers")
	require.ErrorContains(t, err, "401")
	require.NotContains(t, err.Error(), "\n", "one line")
}

func TestAHubOnALoopbackAddress_AcceptsOnlyLoopbackHosts(t *testing.T) {
	n, _ := start(t, settings(""), node.Options{})
	for host, want := range map[string]int{
		"evil.example": http.StatusBadRequest, "evil.example:80": http.StatusBadRequest, "10.0.0.1": http.StatusBadRequest,
		"localhost": http.StatusOK, "LOCALHOST:8080": http.StatusOK, "127.0.0.1:1": http.StatusOK, "[::1]:8080": http.StatusOK,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/healthz", nil)
		require.NoError(t, err)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, host)
	}
}
