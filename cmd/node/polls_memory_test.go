//go:build !race

package node_test

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// memoryInUse returns the number of bytes that objects and stacks occupy.
func memoryInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A waiting Peek must use less than 8 KB. The race detector uses additional
// memory for each goroutine, so the test does not run with it.
func TestWaitingPeeks_TakeLessThan8KBEach(t *testing.T) {
	const polls, perActor = 400, 8
	cfg := settings("")
	cfg.Limits.Waiting = 10 * polls // only a tenth of this limit is available to actors without a mailbox
	n, stop := start(t, cfg, node.Options{ReadinessInterval: -1})
	open := func(i int) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "GET /v1/peek/aggregations?wait=60s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: test\r\nX-Actor-Id: actor-%d\r\n\r\n", i/perActor)
		require.NoError(t, err)
		return conn
	}
	status, _ := call(t, http.MethodGet, n.URL()+"/v1/peek?wait=10ms", "b", "") // the first Peek allocates memory that all Peeks share
	require.Equal(t, 204, status)

	before := memoryInUse()
	conns := make([]net.Conn, polls)
	for i := range conns {
		conns[i] = open(i)
	}
	require.Eventually(t, func() bool { return gauge(t, n, "messagehub_http_peeks_waiting") == polls }, 30*time.Second, 5*time.Millisecond)
	require.GreaterOrEqual(t, gauge(t, n, "messagehub_http_connections"), polls, "they count as connections")
	var each int64
	require.Eventually(t, func() bool { // the runtime does not free the stacks of ended handlers immediately
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
