package node_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

// TestEmbeddedBus_HasTheQueuesOfTheTable compares a node's embedded bus with
// the queues that the same settings require on Azure. They may differ only in
// the sizes of the queues.
func TestEmbeddedBus_HasTheQueuesOfTheTable(t *testing.T) {
	cfg := settings(t.TempDir())
	cfg.BusListen = "127.0.0.1:0"
	n, _ := start(t, cfg, node.Options{})
	azure := settings("")
	azure.ServiceBus.Connection = config.Secret("Endpoint=sb://" + n.BusAddr().String() + ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true")
	found, err := node.Provision(t.Context(), &azure, node.ProvisionOptions{CheckOnly: true}, node.Options{})
	require.NoError(t, err)
	require.Len(t, found, len(deployment.Queues(&cfg)))
	for _, r := range found {
		require.Equal(t, client.StateOK, r.State, r.Name)
		for _, note := range r.Notes {
			require.True(t, strings.HasPrefix(note, "maximum size in MB"), note)
		}
	}
}
