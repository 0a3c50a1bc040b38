package embedded_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// TestLimits_AreThoseOfCosmos sends requests at each limit and just above it. Only package engine tests the limit of 20
// GB, because it can fake the size of a partition.
func TestLimits_AreThoseOfCosmos(t *testing.T) {
	const item = 2 << 20
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	sized := func(size int) string { // sized returns a document of the given size
		const frame = `{"id":"x","pk":"p","d":""}`
		return `{"id":"x","pk":"p","d":"` + strings.Repeat("x", size-len(frame)) + `"}`
	}
	joins := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf(" JOIN j%d IN c.l", i)
		}
		return text
	}
	createDoc := func(key, body string) func(*testing.T, *embedded.Engine, *azcosmos.ContainerClient) int {
		return func(t *testing.T, _ *embedded.Engine, c *azcosmos.ContainerClient) int {
			answer, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), []byte(body), nil)
			return clientStatus(t, answer.RawResponse, err)
		}
	}
	withKey := func(n int) func(*testing.T, *embedded.Engine, *azcosmos.ContainerClient) int {
		key := strings.Repeat("k", n)
		return createDoc(key, fmt.Sprintf(`{"id":"x","pk":%q}`, key))
	}
	patched := func(operations, bytes int) func(*testing.T, *embedded.Engine, *azcosmos.ContainerClient) int {
		return func(t *testing.T, _ *embedded.Engine, c *azcosmos.ContainerClient) int {
			createDocs(t, c, []byte(sized(item/2)))
			answer, err := c.PatchItem(t.Context(), pk, "x", patchOf(func(p *azcosmos.PatchOperations) {
				for range operations {
					p.AppendSet("/more", strings.Repeat("x", bytes))
				}
			}), nil)
			return clientStatus(t, answer.RawResponse, err)
		}
	}
	batched := func(operations, bytes int) func(*testing.T, *embedded.Engine, *azcosmos.ContainerClient) int {
		return func(t *testing.T, _ *embedded.Engine, c *azcosmos.ContainerClient) int {
			batch := c.NewTransactionalBatch(pk)
			for i := range operations {
				batch.UpsertItem(fmt.Appendf(nil, `{"id":"%d","pk":"p","d":%q}`, i, strings.Repeat("x", bytes)), nil)
			}
			answer, err := c.ExecuteTransactionalBatch(t.Context(), batch, nil)
			return clientStatus(t, answer.RawResponse, err)
		}
	}
	queried := func(text string, header ...string) func(*testing.T, *embedded.Engine, *azcosmos.ContainerClient) int {
		return func(t *testing.T, engine *embedded.Engine, _ *azcosmos.ContainerClient) int {
			answer, _ := sendRequest(t, engine, queryRequest(t, engine, text, "[]", header...)())
			return answer.StatusCode
		}
	}
	made := func(properties string, header ...string) func(*testing.T, *embedded.Engine, *azcosmos.ContainerClient) int {
		return func(t *testing.T, engine *embedded.Engine, _ *azcosmos.ContainerClient) int {
			answer, _ := sendRequest(t, engine, signedRequest(t, engine, "POST", "/dbs/db/colls", "colls", "dbs/db", properties, header...))
			return answer.StatusCode
		}
	}
	keyed := func(more string) string {
		return `{"id":"new","partitionKey":{"paths":["/pk"],"version":2}` + more + `}`
	}
	unique := func(keys, paths int) string {
		key := `{"paths":[` + strings.TrimSuffix(strings.Repeat(`"/a",`, paths), ",") + `]}`
		return keyed(`,"uniqueKeyPolicy":{"uniqueKeys":[` + strings.TrimSuffix(strings.Repeat(key+",", keys), ",") + `]}`)
	}
	paths := func(n int) string {
		return `{"id":"new","partitionKey":{"kind":"MultiHash","version":2,"paths":[` + strings.TrimSuffix(strings.Repeat(`"/a",`, n), ",") + `]}}`
	}
	for _, tc := range []struct {
		name string
		do   func(*testing.T, *embedded.Engine, *azcosmos.ContainerClient) int
		want int
	}{
		{"an id of 1023 bytes", createDoc("p", fmt.Sprintf(`{"id":%q,"pk":"p"}`, strings.Repeat("é", 511)+"x")), 201},
		{"an id of 1024 bytes", createDoc("p", fmt.Sprintf(`{"id":%q,"pk":"p"}`, strings.Repeat("é", 512))), 400},
		{"a partition key of 2048 bytes", withKey(2048), 201},
		{"a partition key of 2049 bytes", withKey(2049), 400},
		{"a document nested 128 levels deep", createDoc("p", `{"id":"x","pk":"p","d":`+nested(127)+`}`), 201},
		{"a document nested 129 levels deep", createDoc("p", `{"id":"x","pk":"p","d":`+nested(128)+`}`), 400},
		{"a document of 2 MB", createDoc("p", sized(item)), 201},
		{"a document of 2 MB and a byte", createDoc("p", sized(item+1)), 413},
		{"a time to live of 68 years", createDoc("p", fmt.Sprintf(`{"id":"x","pk":"p","ttl":%d}`, math.MaxInt32)), 201},
		{"a time to live of 68 years and a second", createDoc("p", fmt.Sprintf(`{"id":"x","pk":"p","ttl":%d}`, math.MaxInt32+1)), 400},
		{"a patch of 10 operations", patched(10, 1), 200},
		{"a patch of 11 operations", patched(11, 1), 400},
		{"a patch to almost 2 MB", patched(1, item/2-100), 200},
		{"a patch to more than 2 MB", patched(1, item/2+100), 413},
		{"a batch of 100 operations", batched(100, 1), 200},
		{"a batch of 101 operations", batched(101, 1), 400},
		{"a batch of almost 2 MB", batched(10, item/10-200), 200},
		{"a batch of more than 2 MB", batched(10, item/10), 413},
		{"a query of 512 KB", queried("SELECT 1" + strings.Repeat(" ", 512<<10-8)), 200},
		{"a query of 512 KB and a byte", queried("SELECT 1" + strings.Repeat(" ", 512<<10-7)), 400},
		{"a query nested 90 levels deep", queried("SELECT VALUE " + strings.Repeat("(", 90) + "1" + strings.Repeat(")", 90)), 200},
		{"a query nested beyond all measure", queried("SELECT VALUE " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000)), 400},
		{"ten JOINs", queried("SELECT VALUE 1 FROM c" + joins(10)), 200},
		{"eleven JOINs", queried("SELECT VALUE 1 FROM c" + joins(11)), 400},
		{"a page of one", queried("SELECT * FROM c", "x-ms-max-item-count", "1"), 200},
		{"a page of none", queried("SELECT * FROM c", "x-ms-max-item-count", "0"), 400},
		{"a container id of 255 characters", made(strings.Replace(keyed(""), "new", strings.Repeat("c", 255), 1)), 201},
		{"a container id of 256 characters", made(strings.Replace(keyed(""), "new", strings.Repeat("c", 256), 1)), 400},
		{"a partition key of 3 paths", made(paths(3)), 201},
		{"a partition key of 4 paths", made(paths(4)), 400},
		{"10 unique keys of 16 paths", made(unique(10, 16)), 201},
		{"11 unique keys", made(unique(11, 1)), 400},
		{"a unique key of 17 paths", made(unique(1, 17)), 400},
		{"a default time to live of 68 years", made(keyed(`,"defaultTtl":2147483647`)), 201},
		{"a default time to live beyond that", made(keyed(`,"defaultTtl":2147483648`)), 400},
		{"400 RU/s", made(keyed(""), "x-ms-offer-throughput", "400"), 201},
		{"399 RU/s", made(keyed(""), "x-ms-offer-throughput", "399"), 400},
		{"1,000,000 RU/s", made(keyed(""), "x-ms-offer-throughput", "1000000"), 201},
		{"1,000,100 RU/s", made(keyed(""), "x-ms-offer-throughput", "1000100"), 400},
		{"up to 1000 RU/s", made(keyed(""), "x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":1000}`), 201},
		{"up to 900 RU/s", made(keyed(""), "x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":900}`), 400},
		{"both kinds of throughput", made(keyed(""), "x-ms-cosmos-offer-autopilot-settings", `{"maxThroughput":1000}`, "x-ms-offer-throughput", "400"), 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			engine, c := openEngine(t, embedded.Options{}, withTTL(100))
			require.Equal(t, tc.want, tc.do(t, engine, c))
		})
	}
}
