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

func TestEveryContainerHasItsJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(&Options{Seed: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, w.close()) }()
		for _, c := range containers.All() {
			require.NotNil(t, w.judges[c.Judge], c.Name)
		}
	})
}

// inBubble creates a container that is not listed in the engine of a world, and has use
// make its use of it.
func inBubble(t *testing.T, use func(w *world, door *backDoor) error) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(&Options{Seed: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, w.close()) }()
		door, err := newBackDoor(w)
		require.NoError(t, err)
		_, err = door.cosmos.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: database}, nil)
		require.NoError(t, err)
		db, err := door.cosmos.NewDatabase(database)
		require.NoError(t, err)
		_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
			ID: "deliveries", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/channel"}, Version: 2},
		}, nil)
		require.NoError(t, err)
		require.NoError(t, w.failed())
		err = use(w, door)
		const want = `the simulation does not know the container "deliveries"`
		require.ErrorContains(t, w.failed(), want)
		require.ErrorContains(t, w.simulate(), want, "the run fails")
		require.NoError(t, err)
	})
}

func TestACommitOfAnUnknownContainerFailsTheRun(t *testing.T) {
	inBubble(t, func(_ *world, door *backDoor) error {
		c, err := door.cosmos.NewContainer(database, "deliveries")
		if err == nil {
			_, err = c.CreateItem(context.WithoutCancel(t.Context()), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"1","channel":"a"}`), nil)
		}
		return err
	})
}

func TestARequestOfAnUnknownContainerFailsTheRun(t *testing.T) {
	inBubble(t, func(w *world, _ *backDoor) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, secure(w.engine.Endpoint())+"/dbs/messagehub/colls/deliveries/docs/1", nil)
		require.NoError(t, err)
		_, err = w.newHub(0).http.Do(req)
		require.ErrorContains(t, err, `"deliveries"`)
		return nil
	})
}
