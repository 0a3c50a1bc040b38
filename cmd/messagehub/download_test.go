package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// cutResponses returns middleware that aborts the response to each GET after
// this number of bytes of the body.
func cutResponses(after int, more func(w http.ResponseWriter, r *http.Request) bool) func(http.Handler) http.Handler {
	return func(hub http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case more != nil && more(w, r):
			case r.Method == http.MethodGet:
				hub.ServeHTTP(&cut{ResponseWriter: w, left: after}, r)
			default:
				hub.ServeHTTP(w, r)
			}
		})
	}
}

type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// bigEvents returns events for one bundle of about 600 KB.
func bigEvents() string {
	var lines strings.Builder
	for n := range 10 {
		lines.WriteString(event(n+1, `,"payload":"`+strings.Repeat("x", 900)+`"`))
	}
	for n := range 2_000 {
		lines.WriteString(event(n+101, ""))
	}
	return lines.String()
}

func TestPeek_ResumesAfterALostConnection(t *testing.T) {
	var requests atomic.Int32
	url := memoryHub(t, cutResponses(64<<10, func(_ http.ResponseWriter, r *http.Request) bool {
		requests.Add(1)
		return false
	}))
	require.Equal(t, 0, messagehub(t, bigEvents(), "send", "--url", url, "-").status)
	requests.Store(0)
	got := messagehub(t, "", "peek", "--url", url, "--actor", actorA)
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, 2_010, strings.Count(got.out, `"sequence":`))
	require.True(t, strings.HasPrefix(got.out, "[\n{") && strings.HasSuffix(got.out, "}\n]\n"))
	require.Greater(t, int(requests.Load()), len(got.out)/(64<<10))
	require.Contains(t, got.err, "messagehub: the connection broke: unexpected EOF after 65536 bytes; fetching the rest\n")
}

func TestPeek_WaitsForAnUnavailableHub(t *testing.T) {
	var tries atomic.Int32
	url := memoryHub(t, cutResponses(100_000, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/bundles/") {
			return false
		}
		switch tries.Add(1) {
		case 1:
			http.Error(w, "away", http.StatusBadGateway)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	}))
	messagehub(t, bigEvents(), "send", "--url", url, "-")
	got := messagehub(t, "", "peek", "--url", url, "--actor", actorA)
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, 2_010, strings.Count(got.out, `"sequence":`))
	require.Contains(t, got.err, "Bad Gateway (502)")
}

func TestPeek_StartsAgainIfItCannotResume(t *testing.T) {
	url := memoryHub(t, cutResponses(1<<30, nil))
	messagehub(t, bigEvents(), "send", "--url", url, "-")
	want := messagehub(t, "", "peek", "--url", url, "--actor", actorA)
	// The proxy does not support ranges. With each attempt, it forwards three
	// times as many bytes.
	after := 50_000
	proxied := memoryProxy(t, url, func(r *http.Request) { r.Header.Del("Range") }, func() int { after *= 3; return after })
	got := messagehub(t, "", "peek", "--url", proxied, "--actor", actorA)
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, want.out, got.out)
}

func TestPeek_DoesNotMixTwoBundles(t *testing.T) {
	for name, path := range map[string]string{"dequeued meanwhile": "", "replaced": "/v1/peek"} {
		t.Run(name, func(t *testing.T) {
			url := memoryHub(t, nil)
			messagehub(t, bigEvents(), "send", "--url", url, "-")
			proxied := memoryProxy(t, url, func(r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/v1/bundles/") {
					messagehub(t, "", "dequeue", "--url", url, "--actor", actorA, strings.TrimPrefix(r.URL.Path, "/v1/bundles/"))
					messagehub(t, event(9_001, ""), "send", "--url", url, "-")
					if path != "" {
						r.URL.Path = path
					}
				}
			}, func() int { return 70_000 })
			got := messagehub(t, "", "peek", "--url", proxied, "--actor", actorA)
			require.Equal(t, 1, got.status)
			require.NotContains(t, got.out, "000000009001")
			require.Contains(t, got.err, "the body is incomplete, so the output is not the whole bundle")
			require.Contains(t, got.err, map[string]string{"": "Not found (404)", "/v1/peek": "another body"}[path])
		})
	}
}

func TestPeek_GivesUpInTime(t *testing.T) {
	url := memoryHub(t, cutResponses(100_000, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/v1/bundles/") {
			panic(http.ErrAbortHandler)
		}
		return false
	}))
	messagehub(t, bigEvents(), "send", "--url", url, "-")
	got := messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--timeout", "4s")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "the body is incomplete, so the output is not the whole bundle; peek again, and the hub repeats it (")
}

func TestSend_DoesNotRetryOnAFullDisk(t *testing.T) {
	url := memoryHub(t, nil)
	messagehub(t, bigEvents(), "send", "--url", url, "-")
	full := errors.New("no space left on device")
	hub, err := hubclient.New(url)
	require.NoError(t, err)
	defer hub.Close()
	p := &process{out: failingWriter{full}, err: new(strings.Builder)}
	require.ErrorIs(t, p.peek(t.Context(), hub, actorA, hubclient.PeekOptions{}), full)
	require.NotContains(t, p.err.(*strings.Builder).String(), "fetching the rest")
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// memoryProxy starts a proxy for a hub. change alters the requests. The
// response to each GET is aborted after the number of bytes that after returns.
func memoryProxy(t *testing.T, to string, change func(*http.Request), after func() int) string {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change(r)
		proxy.ServeHTTP(&cut{ResponseWriter: w, left: after()}, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
