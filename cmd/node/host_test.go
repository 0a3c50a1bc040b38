package node_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

func TestHub_AcceptsOnlyTheHostsOfThisMachine(t *testing.T) {
	n, stop := start(t, settings(""), node.Options{})
	for host, want := range map[string]int{
		"127.0.0.1": http.StatusOK, "localhost:1": http.StatusOK, "hub.localhost": http.StatusOK,
		"page.example": http.StatusBadRequest, "localhost.page.example": http.StatusBadRequest,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/healthz", http.NoBody)
		require.NoError(t, err)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, host)
	}
	require.NoError(t, stop())
}
