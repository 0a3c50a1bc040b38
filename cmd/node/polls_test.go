package node_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// memoryInUse returns the bytes of objects and stacks that are in use.
func memoryInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// gauge returns the value of a metric of a node.
func gauge(t *testing.T, n *node.Node, name string) int {
	t.Helper()
	families, err := n.Gatherer().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return 0
}

func TestWaitingPeeks_TakeLessThan8KBEach(t *testing.T) {
	const polls, perActor = 400, 8
	cfg := settings("")
	cfg.Limits.Waiting = 10 * polls // none of the actors has a mailbox, so they have a tenth
	n, stop := start(t, cfg, node.Options{ReadinessInterval: -1})
	open := func(i int) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "GET /v1/peek/aggregations?wait=60s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: test\r\nX-Actor-Id: actor-%d\r\n\r\n", i/perActor)
		require.NoError(t, err)
		return conn
	}
	status, _ := call(t, http.MethodGet, n.URL()+"/v1/peek?wait=10ms", "b", "") // what is made once is made before
	require.Equal(t, 204, status)

	before := memoryInUse()
	conns := make([]net.Conn, polls)
	for i := range conns {
		conns[i] = open(i)
	}
	require.Eventually(t, func() bool { return gauge(t, n, "messagehub_http_peeks_waiting") == polls }, 30*time.Second, 5*time.Millisecond)
	require.GreaterOrEqual(t, gauge(t, n, "messagehub_http_connections"), polls, "they count as connections")
	var each int64
	require.Eventually(t, func() bool { // the stacks of the handlers that have ended are freed in time
		each = (memoryInUse() - before) / polls
		return each < 8<<10
	}, 30*time.Second, 5*time.Millisecond)
	t.Logf("%d bytes for each of %d Peeks, with the other end of its connection", each, polls)

	require.NoError(t, stop(), "a drain answers them all")
	for i, conn := range conns {
		head := make([]byte, 64)
		size, err := conn.Read(head)
		require.NoError(t, err, i)
		require.True(t, strings.HasPrefix(string(head[:size]), "HTTP/1.1 204 "), string(head))
		require.NoError(t, conn.Close())
	}
}

func TestWaitingPeeks_OfNewcomersLeaveConnectionsToOthers(t *testing.T) {
	cfg := settings("")
	cfg.Limits.Connections = 40 // so 30 Peeks may wait, of which newcomers have 3
	var log bytes.Buffer
	n, stop := start(t, cfg, node.Options{ReadinessInterval: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ask := func(actor int) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET /v1/peek?wait=60s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Actor-Id: made-up-%d\r\n\r\n", actor)
		require.NoError(t, err)
		return conn
	}
	for i := range 3 {
		ask(i)
	}
	require.Eventually(t, func() bool { return gauge(t, n, "messagehub_http_peeks_waiting") == 3 }, 30*time.Second, time.Millisecond)
	for i := 3; i < 50; i++ {
		resp, err := http.ReadResponse(bufio.NewReader(ask(i)), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	}
	status, _ := call(t, http.MethodGet, n.URL()+"/v1/peek", "b", "")
	require.Equal(t, http.StatusNoContent, status)
	require.NoError(t, stop())
	require.Equal(t, 1, strings.Count(log.String(), "limits_waiting=10000 connections=40 waiting=30"), log.String())
}
