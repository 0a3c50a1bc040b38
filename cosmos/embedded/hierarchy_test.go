package embedded_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func TestHierarchicalKey_IsQueriedByItsFirstParts(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{}, func(p *azcosmos.ContainerProperties) {
		p.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Paths: []string{"/a", "/b", "/n"}, Version: 2}
	})
	for i := range 24 {
		a, b := fmt.Sprint("a", i%3), fmt.Sprint("b", i%2)
		key := azcosmos.NewPartitionKeyString(a).AppendString(b).AppendNumber(float64(i / 6))
		_, err := c.CreateItem(t.Context(), key, fmt.Appendf(nil, `{"id":"%d","a":%q,"b":%q,"n":%d}`, i, a, b, i/6), nil)
		require.NoError(t, err)
	}
	for _, throughput := range []int32{1000, 40_000} {
		raiseThroughput(t, c, throughput)
		for query, want := range map[string]int{
			"SELECT * FROM c": 24, "SELECT * FROM c WHERE c.a = 'a1'": 8, "SELECT * FROM c WHERE c.a = 'a1' AND c.b = 'b0'": 4,
			"SELECT * FROM c WHERE c.b = 'b0'": 12, "SELECT * FROM c WHERE c.a = 'a1' AND c.b = 'b0' AND c.n = 2 ORDER BY c.id": 1,
			"SELECT * FROM c WHERE c.a = 'a'": 0,
		} {
			n := 0
			for _, page := range queryAll(t, c, azcosmos.NewPartitionKey(), query, nil) {
				n += len(page)
			}
			require.Equal(t, want, n, query)
		}
		ask := func(query, key string) (*http.Response, string) {
			return sendRequest(t, engine, queryRequest(t, engine, query, "[]", "x-ms-documentdb-partitionkey", key,
				"x-ms-documentdb-query-enablecrosspartition", "True")())
		}
		for key, want := range map[string]int{`["a1"]`: 8, `["a1","b0"]`: 4, `["a1","b0",2]`: 1, `["x"]`: 0} {
			answer, body := ask("SELECT * FROM c", key)
			require.Equal(t, 200, answer.StatusCode, body)
			require.Contains(t, body, fmt.Sprintf(`"_count":%d}`, want), key)
		}
		answer, _ := ask("SELECT * FROM c", `["a1","b0",2,3]`)
		require.Equal(t, 400, answer.StatusCode)
		var many []azcosmos.ItemIdentity
		for i := range 24 {
			many = append(many, azcosmos.ItemIdentity{ID: fmt.Sprint(i), PartitionKey: azcosmos.NewPartitionKeyString(fmt.Sprint("a", i%3)).
				AppendString(fmt.Sprint("b", i%2)).AppendNumber(float64(i / 6))})
		}
		read, err := c.ReadManyItems(t.Context(), many, nil)
		require.NoError(t, err)
		require.Len(t, read.Items, 24)
	}
	_, err := c.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a1").AppendString("b0"), "1", nil)
	require.Equal(t, 400, clientStatus(t, nil, err), "an item needs the whole key")
}
