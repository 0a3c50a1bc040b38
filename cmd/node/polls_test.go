package node_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// gauge returns the value of a node's gauge.
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

// counter returns the value of a node's counter.
func counter(t *testing.T, n *node.Node, name string) int {
	t.Helper()
	families, err := n.Gatherer().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return 0
}

func TestWaitingPeeks_OfNewcomersLeaveConnectionsToOthers(t *testing.T) {
	cfg := settings("")
	cfg.Limits.Connections = 40 // permits 30 waiting Peeks, of which 3 may be from actors without a mailbox
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

func TestWaitingPeeks_KeepTheirConnectionsWhenStrangersRedial(t *testing.T) {
	const connections, polls = 12, 8
	cfg := settings("")
	cfg.Limits.Connections = connections
	n, stop := start(t, cfg, node.Options{ReadinessInterval: -1})
	open := func(text string) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
		return conn
	}
	eventually := func(name string, want int) {
		t.Helper()
		require.Eventually(t, func() bool { return gauge(t, n, name) == want }, 30*time.Second, time.Millisecond)
	}
	const upload = "POST /v1/data-available HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	second := strings.Replace(event, "0b9f", "0b9e", 1)
	waiting := "GET /v1/peek/masterdata?wait=60s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Actor-Id: a\r\n\r\n"

	// After this actor has peeked and dequeued a bundle, it has a mailbox.
	status, _ := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, http.StatusAccepted, status)
	resp, err := http.ReadResponse(bufio.NewReader(open(strings.Replace(waiting, "?wait=60s", "", 1))), nil)
	require.NoError(t, err)
	status, _ = call(t, http.MethodDelete, n.URL()+"/v1/dequeue/"+resp.Header.Get("MessageId"), "a", "")
	require.Equal(t, http.StatusOK, status)

	conns := make([]net.Conn, polls)
	for i := range conns {
		conns[i] = open(waiting)
	}
	eventually("messagehub_http_peeks_waiting", polls)
	domain := open(fmt.Sprintf(upload, len(second)) + second[:1])
	eventually("messagehub_http_requests_in_flight", polls+1)
	var strangers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 * connections {
		strangers.Go(func() {
			for ctx.Err() == nil {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Addr().String())
				if err != nil {
					return
				}
				hangUp := context.AfterFunc(ctx, func() { _ = conn.Close() })
				_, _ = io.WriteString(conn, fmt.Sprintf(upload, 1000)+"[")
				_, _ = io.Copy(io.Discard, conn) // returns when the node closes the connection
				hangUp()
				_ = conn.Close()
			}
		})
	}
	require.Eventually(t, func() bool { return counter(t, n, "messagehub_http_connections_over_limit_total") > 100 }, 30*time.Second, time.Millisecond)

	_, err = io.WriteString(domain, second[1:])
	require.NoError(t, err)
	for i, conn := range conns {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err, i)
		require.Equal(t, http.StatusOK, resp.StatusCode, i)
		require.NoError(t, conn.Close())
	}
	cancel()
	strangers.Wait()
	require.NoError(t, domain.Close())
	http.DefaultClient.CloseIdleConnections()
	eventually("messagehub_http_connections", 0)
	require.NoError(t, stop())
}
