package node_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain/hub"
)

func TestCheck_WorksOnARunningNodeAndOnItsFolder(t *testing.T) {
	dir := t.TempDir()
	n, stop := start(t, settings(dir), node.Options{})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 202, status, body)
	status, body = call(t, http.MethodPost, n.URL()+"/v1/admin/check", "", "{}")
	require.Equal(t, 200, status)
	lines := strings.Split(strings.TrimSpace(body), "\n")
	var last struct{ Report hub.CheckReport }
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	last.Report.Objects, last.Report.Rows = 0, 0 // ignored, because the ledger counts the hub's own content only after some time
	require.Equal(t, hub.CheckReport{Recipients: 1, Cabinets: 1, Drawers: 1, Events: 1, Findings: []hub.Finding{}}, last.Report)

	_, err := node.Check(t.Context(), settings(dir), hub.CheckOptions{}, slog.New(slog.DiscardHandler))
	require.ErrorAs(t, err, new(*node.InUseError))
	require.NoError(t, stop())
	report, err := node.Check(t.Context(), settings(dir), hub.CheckOptions{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.EqualValues(t, 1, report.Events)
	require.Zero(t, report.Found)
}

func TestCheck_RefusesAFolderWithoutData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, err := node.Check(t.Context(), settings(dir), hub.CheckOptions{}, slog.New(slog.DiscardHandler))
	require.ErrorAs(t, err, new(*node.NoDataError))
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCheck_OfARemoteAccountReadsItsEvents(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	cfg := settings(t.TempDir())
	cfg.Cosmos.Endpoint, cfg.Cosmos.Key = serveHTTP(t, engine.Handler()), config.Secret(engine.Key())
	n, stop := start(t, cfg, node.Options{})
	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
	require.Equal(t, 202, status, body)
	require.NoError(t, stop())
	report, err := node.Check(t.Context(), cfg, hub.CheckOptions{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.EqualValues(t, 1, report.Events)
	http.DefaultClient.CloseIdleConnections()
}

func TestTheStore_HasTheRetentionOfTheConfiguration(t *testing.T) {
	for retention, kept := range map[time.Duration]bool{time.Minute: false, 0: true, 7 * 24 * time.Hour: true} {
		engine, err := embedded.Open(embedded.Options{})
		require.NoError(t, err)
		cfg := settings(t.TempDir())
		cfg.Cosmos.Endpoint, cfg.Cosmos.Key = serveHTTP(t, engine.Handler()), config.Secret(engine.Key())
		cfg.Retention = retention
		n, stop := start(t, cfg, node.Options{})
		status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", event)
		require.Equal(t, 202, status, body)
		const id = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
		status, _ = call(t, http.MethodGet, n.URL()+"/v1/peek?bundleId="+id, "a", "")
		require.Equal(t, 200, status)
		status, _ = call(t, http.MethodDelete, n.URL()+"/v1/dequeue/"+id, "a", "")
		require.Equal(t, 200, status)
		require.NoError(t, stop())
		require.Equal(t, kept, closedBundleLasts(t, engine, 5*time.Minute), retention)
		require.NoError(t, engine.Close())
	}
}

// closedBundleLasts reports whether the closed bundle is still stored after
// span.
func closedBundleLasts(t *testing.T, engine *embedded.Engine, span time.Duration) bool {
	t.Helper()
	credential, err := azcosmos.NewKeyCredential(engine.Key())
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(engine.Endpoint(), credential, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: engine.Transport()}})
	require.NoError(t, err)
	defer client.Close()
	bundles, err := client.NewContainer("messagehub", "bundles")
	require.NoError(t, err)
	page, err := bundles.NewQueryItemsPager("SELECT c.ttl FROM c WHERE c.kind = 'bundle'", azcosmos.NewPartitionKeyString("a"), nil).NextPage(t.Context())
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	var doc struct{ TTL int }
	require.NoError(t, json.Unmarshal(page.Items[0], &doc))
	return doc.TTL == 0 || time.Duration(doc.TTL)*time.Second > span
}
