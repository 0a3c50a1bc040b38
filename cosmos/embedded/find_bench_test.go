package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// BenchmarkFindAmong60000 finds a few of 60,000 documents of half a kilobyte in one logical
// partition.
func BenchmarkFindAmong60000(b *testing.B) {
	engine, c := openEngine(b, embedded.Options{Dir: b.TempDir()})
	for n := 0; n < 60_000; n += 100 {
		batch := c.NewTransactionalBatch(pk)
		for i := n; i < n+100; i++ {
			batch.CreateItem(fmt.Appendf(nil, `{"id":"id-%d","pk":"p","n":%d,"kind":"kind-%d","text":%q}`, i, i, i%600, strings.Repeat("x", 250)), nil)
		}
		answer, err := c.ExecuteTransactionalBatch(context.Background(), batch, nil)
		require.NoError(b, err)
		require.True(b, answer.Success)
	}
	in := "'id-7'"
	for i := range 99 {
		in += fmt.Sprintf(",'id-%d'", i*601)
	}
	for _, q := range []struct {
		name, text string
		results    int
	}{
		{"by id", "SELECT * FROM c WHERE c.id = 'id-30000'", 1},
		{"by 100 ids", "SELECT * FROM c WHERE c.id IN (" + in + ")", 100},
		{"by an id that is not there", "SELECT * FROM c WHERE c.id = 'x'", 0},
		{"by an equality", "SELECT * FROM c WHERE c.kind = 'kind-300'", 100},
		{"by a range", "SELECT * FROM c WHERE c.n >= 59900", 100},
		{"count by a range", "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 59900", 1},
		{"sorted", "SELECT TOP 100 * FROM c ORDER BY c.n DESC", 100},
	} {
		b.Run(q.name, func(b *testing.B) {
			request := queryRequest(b, engine, q.text, "[]")
			for b.Loop() {
				answer, err := engine.Transport().Do(request())
				require.NoError(b, err)
				require.Equal(b, 200, answer.StatusCode)
				require.Equal(b, fmt.Sprint(q.results), answer.Header.Get("x-ms-item-count"))
			}
		})
	}
	b.Run("read by id", func(b *testing.B) {
		request := signedRequest(b, engine, "GET", docsPath+"/id-30000", "docs", containerLink+"/docs/id-30000", "", inP, `["p"]`)
		for b.Loop() {
			answer, err := engine.Transport().Do(request)
			require.NoError(b, err)
			require.Equal(b, 200, answer.StatusCode)
		}
	})
	b.Run("read 100 of many", func(b *testing.B) {
		var items []azcosmos.ItemIdentity
		for i := range 100 {
			items = append(items, azcosmos.ItemIdentity{ID: fmt.Sprintf("id-%d", i*600), PartitionKey: pk})
		}
		for b.Loop() {
			answer, err := c.ReadManyItems(context.Background(), items, nil)
			require.NoError(b, err)
			require.Len(b, answer.Items, 100)
		}
	})
}
