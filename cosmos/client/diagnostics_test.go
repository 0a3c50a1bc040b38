package client

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func TestRequestsOfACall_RecordNoDiagnostics(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	db, err := Connect(Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	require.NoError(t, err)
	defer db.Close()
	containers := []ContainerSpec{{Name: "documents", PartitionKey: "/p", KeyBytes: 64}}
	require.NoError(t, db.Provision(t.Context(), containers))
	documents, err := db.Container("documents")
	require.NoError(t, err)

	_, direct := documents.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("p"), "missing", nil)
	_, has := azcosmos.DiagnosticsFromError(direct)
	require.True(t, has, "azcosmos records them otherwise: %v", direct)
	_, err = New(db, Options{}).Begin("test").Read(t.Context(), documents, "p", "missing", nil)
	require.True(t, IsNotFound(err), "%v", err)
	_, has = azcosmos.DiagnosticsFromError(err)
	require.False(t, has)
}
