package embedded_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// openEngine opens an engine and creates a container partitioned by /pk.
func openEngine(t testing.TB, o embedded.Options, change ...func(*azcosmos.ContainerProperties)) (*embedded.Engine, *azcosmos.ContainerClient) {
	t.Helper()
	engine, err := embedded.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine, newContainer(t, engine, change...)
}

func newClient(t testing.TB, engine *embedded.Engine) *azcosmos.Client {
	t.Helper()
	return clientOver(t, engine, engine.Transport())
}

func clientOver(t testing.TB, engine *embedded.Engine, transport policy.Transporter) *azcosmos.Client {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(engine.Key())
	require.NoError(t, err)
	c, err := azcosmos.NewClientWithKey(engine.Endpoint(), cred, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: transport, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// connectThrough returns a client that uses transport to access the existing container c of database db.
func connectThrough(t testing.TB, engine *embedded.Engine, transport policy.Transporter) *azcosmos.ContainerClient {
	t.Helper()
	c, err := clientOver(t, engine, transport).NewContainer("db", "c")
	require.NoError(t, err)
	return c
}

// newContainer creates the database db and its container c.
func newContainer(t testing.TB, engine *embedded.Engine, change ...func(*azcosmos.ContainerProperties)) *azcosmos.ContainerClient {
	t.Helper()
	c := newClient(t, engine)
	_, err := c.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, nil)
	require.NoError(t, err)
	db, err := c.NewDatabase("db")
	require.NoError(t, err)
	properties := azcosmos.ContainerProperties{
		ID:                     "c",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}
	for _, f := range change {
		f(&properties)
	}
	_, err = db.CreateContainer(t.Context(), properties, nil)
	require.NoError(t, err)
	docs, err := db.NewContainer("c")
	require.NoError(t, err)
	return docs
}

var pk = azcosmos.NewPartitionKeyString("p")

func newDoc(id string, n int) []byte {
	return fmt.Appendf(nil, `{"id":%q,"pk":"p","n":%d}`, id, n)
}

func createDocs(t testing.TB, c *azcosmos.ContainerClient, docs ...[]byte) {
	t.Helper()
	for _, d := range docs {
		_, err := c.CreateItem(t.Context(), pk, d, nil)
		require.NoError(t, err)
	}
}

// queryAll reads all pages of a query and returns the results of each page.
func queryAll(t testing.TB, c *azcosmos.ContainerClient, pk azcosmos.PartitionKey, query string, o *azcosmos.QueryOptions) [][]string {
	t.Helper()
	var pages [][]string
	for pager := c.NewQueryItemsPager(query, pk, o); pager.More(); {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err, query)
		results := []string{}
		for _, item := range page.Items {
			results = append(results, string(item))
		}
		pages = append(pages, results)
	}
	return pages
}

func TestDocument_LivesFromCreateToDelete(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "on disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			engine, c := openEngine(t, embedded.Options{Dir: dir})

			created, err := c.CreateItem(ctx, pk, newDoc("a", 1), &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
			require.NoError(t, err)
			require.Equal(t, 201, created.RawResponse.StatusCode)
			require.Positive(t, created.RequestCharge)
			require.NotEmpty(t, created.SessionToken)

			read, err := c.ReadItem(ctx, pk, "a", nil)
			require.NoError(t, err)
			require.Equal(t, created.ETag, read.ETag)
			require.Equal(t, string(created.Value), string(read.Value))
			var got map[string]any
			require.NoError(t, json.Unmarshal(read.Value, &got))
			require.Equal(t, string(read.ETag), got["_etag"])
			require.Contains(t, got, "_rid")

			replaced, err := c.ReplaceItem(ctx, pk, "a", newDoc("a", 2), &azcosmos.ItemOptions{IfMatchEtag: &read.ETag})
			require.NoError(t, err)
			require.Empty(t, replaced.Value)
			require.NotEqual(t, read.ETag, replaced.ETag)

			patch := azcosmos.PatchOperations{}
			patch.AppendIncrement("/n", 40)
			patch.AppendSet("/new", "x")
			patch.SetCondition("from c where c.n = 2")
			_, err = c.PatchItem(ctx, pk, "a", patch, nil)
			require.NoError(t, err)

			batch := c.NewTransactionalBatch(pk)
			batch.CreateItem(newDoc("b", 7), nil)
			batch.ReadItem("a", nil)
			batch.DeleteItem("b", nil)
			batch.UpsertItem(newDoc("d", 8), nil)
			answer, err := c.ExecuteTransactionalBatch(ctx, batch, nil)
			require.NoError(t, err)
			require.True(t, answer.Success)
			require.Len(t, answer.OperationResults, 4)

			require.Equal(t, [][]string{{`{"id":"a","n":42,"new":"x"}`, `{"id":"d","n":8}`}},
				queryAll(t, c, pk, "SELECT c.id, c.n, c.new FROM c WHERE c.n > 5 ORDER BY c.id", nil))

			_, err = c.DeleteItem(ctx, pk, "a", nil)
			require.NoError(t, err)
			require.Positive(t, engine.RequestUnits())
			require.EqualValues(t, 7, engine.Requests())
		})
	}
}
