package node_test

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

func TestBus_ReceivesEventsWhileStrangersUseAllConnections(t *testing.T) {
	cfg := withListeners("")
	cfg.Limits.BusConnections = 32
	cfg.Domains = nil
	n, stop := start(t, cfg, node.Options{})
	for range 40 {
		nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", n.BusAddr().String())
		require.NoError(t, err)
		defer nc.Close()
		const header = "AMQP\x00\x01\x00\x00"
		_, err = io.WriteString(nc, header)
		require.NoError(t, err)
		_, err = io.ReadFull(nc, make([]byte, len(header)))
		require.NoError(t, err, "it replaces an older one")
	}
	const actor = "5790001330552"
	taken, err := newCharges(t, n).Send(t.Context(), chargesFor(actor, 1))
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	resp, body := get(t, n.URL()+"/v1/peek?wait=60s", "X-Actor-Id", actor)
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	require.NoError(t, stop())
}
