package node_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// withOperators returns settings with a separate operators' listener.
func withOperators() config.Config {
	cfg := settings("")
	cfg.AdminListen = "localhost:0"
	return cfg
}

func TestOperatorListener_HasOnlyTheRoutesOfOperators(t *testing.T) {
	n, stop := start(t, withOperators(), node.Options{})
	const actor = "5790001330552"
	for path, want := range map[string][2]int{ // expected status on the first and on the operators' listener
		"/healthz":                          {200, 200},
		"/readyz":                           {200, 200},
		"/openapi.json":                     {200, 200},
		"/v1/peek":                          {204, 404},
		"/api/peek":                         {204, 404},
		"/v1/subscriptions":                 {200, 404},
		"/metrics":                          {404, 200},
		"/debug/pprof/heap":                 {404, 401},
		"/v1/admin/queues/5790001330552":    {404, 200},
		"/v1/%61dmin/queues/5790001330552":  {404, 404},
		"//v1/admin/queues/5790001330552":   {404, 404},
		"/v1/peek/../admin/queues/" + actor: {404, 404},
		"/api/PEEK":                         {204, 404},
		"/METRICS":                          {404, 404},
		"/metricsx":                         {404, 404},
		"/v1/administrators":                {404, 404},
		"/v1/admin/queues/%2e%2e/" + actor + "/..": {404, 404},
	} {
		for i, url := range []string{n.URL(), n.AdminURL()} {
			status, body := call(t, http.MethodGet, url+path, actor, "")
			require.Equal(t, want[i], status, "%s: %s", url+path, body)
		}
	}
	_, body := call(t, http.MethodGet, n.URL()+"/metrics", "", "")
	require.Contains(t, body, "admin-listen")
	require.NoError(t, stop())
}

func TestOperatorListener_TheSameAddressIsOneListener(t *testing.T) {
	cfg := settings("")
	cfg.AdminListen = cfg.Listen
	n, stop := start(t, cfg, node.Options{})
	require.Nil(t, n.AdminAddr())
	require.Equal(t, n.URL(), n.AdminURL())
	for _, path := range []string{"/metrics", "/v1/peek"} {
		status, _ := call(t, http.MethodGet, n.URL()+path, "5790001330552", "")
		require.NotEqual(t, 404, status, path)
	}
	require.NoError(t, stop())
}

func TestOperatorListener_AnswersProbesWhileThePublicOneIsFull(t *testing.T) {
	cfg := withOperators()
	cfg.Limits.Connections = 8
	ca := newAuthority(t)
	cfg.TLS = serverFiles(t, ca)
	n, stop := start(t, cfg, node.Options{})
	var silent []net.Conn // connections on which no client begins a TLS handshake
	for range 40 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.Addr().String())
		require.NoError(t, err)
		silent = append(silent, conn)
	}
	fastest := time.Hour // minimum of several measurements, because the test machine may be busy
	for range 5 {
		began := time.Now()
		require.Equal(t, 200, getOver(t, ca.client(), n.AdminURL()+"/healthz").StatusCode)
		fastest = min(fastest, time.Since(began))
	}
	t.Logf("/healthz took %v", fastest)
	require.Less(t, fastest, 100*time.Millisecond)
	// When the listener is full, a new connection must replace a connection on
	// which no request was sent for half a second.
	require.Eventually(t, func() bool {
		status := getOver(t, ca.client(), n.URL()+"/v1/peek").StatusCode
		require.Contains(t, []int{http.StatusNoContent, http.StatusTooManyRequests}, status)
		return status == http.StatusNoContent
	}, 5*time.Second, 50*time.Millisecond)
	for _, conn := range silent {
		require.NoError(t, conn.Close())
	}
	require.NoError(t, stop())
}

func TestOperatorListener_AnswersProbesUntilRequestsAreServed(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	n, err := node.Open(t.Context(), withOperators(), node.Options{WrapHandler: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/peek" {
				close(arrived)
				<-release
			}
			next.ServeHTTP(w, r)
		})
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, n.Run(ctx)) })
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.Addr().String())
	require.NoError(t, err)
	_, err = fmt.Fprint(conn, "GET /v1/peek HTTP/1.1\r\nHost: localhost\r\nX-Actor-Id: a\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	<-arrived
	cancel()
	require.Eventually(t, func() bool {
		return getOver(t, &http.Transport{}, n.AdminURL()+"/readyz").StatusCode == http.StatusServiceUnavailable
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, 200, getOver(t, &http.Transport{}, n.AdminURL()+"/healthz").StatusCode)
	close(release)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "204 No Content")
	running.Wait()
}

func TestOperatorListener_PortThatIsTakenEndsTheStart(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	cfg := settings("")
	cfg.AdminListen = taken.Addr().String()
	_, err = node.Open(t.Context(), cfg, node.Options{})
	require.ErrorContains(t, err, "another process has this port; stop that one, or choose another port with --admin-listen")
}
