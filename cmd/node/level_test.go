package node_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// build returns the part of /readyz that describes the node's build and the
// store's level.
func build(t *testing.T, n *node.Node) map[string]any {
	t.Helper()
	status, body := call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.Equal(t, 200, status, body)
	var answer struct{ Build map[string]any }
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	return answer.Build
}

func TestReadyz_ReportsVersionAndLevel(t *testing.T) {
	n, _ := start(t, settings(t.TempDir()), node.Options{Version: "v1.2.3"})
	require.Equal(t, map[string]any{"version": "v1.2.3", "api": "1", "level": 1.0, "storeLevel": 1.0}, build(t, n))
	n, _ = start(t, newAccount(t).settings(), node.Options{})
	require.Equal(t, map[string]any{"version": "unknown", "api": "1", "level": 1.0, "storeLevel": 1.0}, build(t, n))
}

// storedLevel returns the document that contains the level.
func (a *account) storedLevel() map[string]any {
	resp, err := a.container("catalog").ReadItem(a.Context(), azcosmos.NewPartitionKeyString("|level"), "level", nil)
	require.NoError(a, err)
	var doc map[string]any
	require.NoError(a, json.Unmarshal(resp.Value, &doc))
	return doc
}

// raiseLevel sets the store's level to one that no version supports.
func (a *account) raiseLevel() {
	var ops azcosmos.PatchOperations
	ops.AppendSet("/level", 1000)
	ops.AppendAdd("/history/-", map[string]any{"what": "activated", "level": 1000, "at": "2030-01-01T00:00:00Z", "version": "v99"})
	_, err := a.container("catalog").PatchItem(a.Context(), azcosmos.NewPartitionKeyString("|level"), "level", ops, nil)
	require.NoError(a, err)
}

func TestANode_IsRegisteredInTheStoreWhileItRuns(t *testing.T) {
	a := newAccount(t)
	_, stop := start(t, a.settings(), node.Options{Version: "v1"})
	nodes := a.storedLevel()["nodes"].(map[string]any)
	require.Len(t, nodes, 1)
	for _, stored := range nodes {
		require.Equal(t, "v1", stored.(map[string]any)["version"])
		require.Equal(t, 1.0, stored.(map[string]any)["level"])
	}
	require.NoError(t, stop())
	require.Empty(t, a.storedLevel()["nodes"])
}

func TestAStoreOfAHigherLevel_IsNotServed(t *testing.T) {
	a := newAccount(t)
	cfg := a.settings()
	_, stop := start(t, cfg, node.Options{})
	require.NoError(t, stop())
	a.raiseLevel()
	before := a.storedLevel()["writeId"]
	_, err := node.Open(t.Context(), cfg, node.Options{})
	require.EqualError(t, err, "check the level of the store: the store has level 1000, and this version knows levels up to 1: use version v99 or a newer one")
	require.Equal(t, before, a.storedLevel()["writeId"])
}

func TestANode_EndsIfTheLevelRisesAboveItsOwn(t *testing.T) {
	a := newAccount(t)
	n, err := node.Open(t.Context(), a.settings(), node.Options{LevelInterval: time.Millisecond})
	require.NoError(t, err)
	a.raiseLevel()
	require.ErrorContains(t, n.Run(context.Background()), "the store has level 1000, and this version knows levels up to 1: use version v99 or a newer one")
	_, err = net.Dial("tcp", n.Addr().String())
	require.Error(t, err, "it serves no longer")
}
