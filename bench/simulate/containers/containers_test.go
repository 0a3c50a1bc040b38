package containers_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/containers"
)

func TestFind_KnowsListedContainersOnly(t *testing.T) {
	for _, c := range containers.All() {
		found, err := containers.Find(c.Name)
		require.NoError(t, err)
		require.Equal(t, c, found)
		require.NotEmpty(t, c.PartitionKey)
		require.NotEmpty(t, c.Checker)
	}
	_, err := containers.Find("deliveries")
	require.ErrorContains(t, err, `does not know the container "deliveries"`)
}

func TestCheck_ReadsTheContainerOfARequest(t *testing.T) {
	for path, want := range map[string]string{
		"/dbs/messagehub/colls/deliveries/docs/1": `"deliveries"`,
		"/dbs/messagehub/colls/deliveries":        `"deliveries"`,
		"/dbs/messagehub/colls/catalog/docs":      "",
		"/dbs/messagehub/colls":                   "",
		"/":                                       "",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://account"+path, nil)
		require.NoError(t, err)
		if err := containers.Check(req); want == "" {
			require.NoError(t, err, path)
		} else {
			require.ErrorContains(t, err, want, path)
		}
	}
}
