package simulate

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/containers"
)

func TestEveryContainer_HasAChecker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, err := newSimulation(&Options{Seed: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, sim.closeAccounts()) }()
		for _, c := range containers.All() {
			require.NotNil(t, sim.work.checkers[c.Checker], c.Name)
		}
	})
}

// useUnlistedContainer creates a container that package containers does not list, and calls use with it.
func useUnlistedContainer(t *testing.T, use func(sim *simulation, access *directAccess) error) {
	synctest.Test(t, func(t *testing.T) {
		sim, err := newSimulation(&Options{Seed: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, sim.closeAccounts()) }()
		access, err := newDirectAccess(sim)
		require.NoError(t, err)
		_, err = access.cosmos.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: database}, nil)
		require.NoError(t, err)
		db, err := access.cosmos.NewDatabase(database)
		require.NoError(t, err)
		_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
			ID: "deliveries", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/channel"}, Version: 2},
		}, nil)
		require.NoError(t, err)
		require.NoError(t, sim.Failure())
		err = use(sim, access)
		const want = `the simulation does not know the container "deliveries"`
		require.ErrorContains(t, sim.Failure(), want)
		require.ErrorContains(t, sim.runToEnd(), want, "the run fails")
		require.NoError(t, err)
	})
}

func TestCommit_OfUnknownContainerFailsTheRun(t *testing.T) {
	useUnlistedContainer(t, func(_ *simulation, access *directAccess) error {
		c, err := access.cosmos.NewContainer(database, "deliveries")
		if err == nil {
			_, err = c.CreateItem(context.WithoutCancel(t.Context()), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"1","channel":"a"}`), nil)
		}
		return err
	})
}

func TestRequest_OfUnknownContainerFailsTheRun(t *testing.T) {
	useUnlistedContainer(t, func(sim *simulation, _ *directAccess) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, withHTTPS(sim.env.engine.Endpoint())+"/dbs/messagehub/colls/deliveries/docs/1", nil)
		require.NoError(t, err)
		_, err = sim.newHub(0).transport.Do(req)
		require.ErrorContains(t, err, `"deliveries"`)
		return nil
	})
}
