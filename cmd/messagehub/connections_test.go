//go:build unix

package main

import (
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServe_AnswersHealthzDespiteIdleConnectionsWithFewDescriptors(t *testing.T) {
	h := spawnCommand(t, []string{tokenVariable + "=" + operatorToken}, "sh", "-c", `ulimit -n 256; exec "$@"`, "sh", program(t),
		"serve", "--listen", "127.0.0.1:0", "--in-memory", "--bus-listen=", "--blob-listen=")
	require.NoError(t, h.waitReady())
	at, err := url.Parse(h.url(t))
	require.NoError(t, err)
	for range 400 {
		conn, err := net.Dial("tcp", at.Host)
		require.NoError(t, err)
		defer conn.Close()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 {
		resp, err := client.Get(h.url(t) + "/healthz")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
	require.NotContains(t, h.stderrText(), "too many open files")
}
