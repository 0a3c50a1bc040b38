package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// clientStatus returns the HTTP status of a response, or of an error of the client.
func clientStatus(t testing.TB, answer *http.Response, err error) int {
	t.Helper()
	var refused *azcore.ResponseError
	if errors.As(err, &refused) {
		return refused.StatusCode
	}
	require.NoError(t, err)
	return answer.StatusCode
}

func patchOf(f func(p *azcosmos.PatchOperations)) azcosmos.PatchOperations {
	var p azcosmos.PatchOperations
	f(&p)
	return p
}

func TestOperations_AnswerWithTheStatusOfCosmos(t *testing.T) {
	stale := azcore.ETag(`"00000000-0000-0000-0000-000000000000"`)
	ifStale := &azcosmos.ItemOptions{IfMatchEtag: &stale}
	session := azcosmos.ConsistencyLevelSession
	other := azcosmos.NewPartitionKeyString("other")
	big := fmt.Appendf(nil, `{"id":"big","pk":"p","data":%q}`, strings.Repeat("x", 2<<20))
	increment := patchOf(func(p *azcosmos.PatchOperations) { p.AppendIncrement("/n", 1) })
	type docs = *azcosmos.ContainerClient
	item := func(f func(context.Context, docs) (azcosmos.ItemResponse, error)) func(context.Context, docs) (*http.Response, error) {
		return func(ctx context.Context, c docs) (*http.Response, error) {
			r, err := f(ctx, c)
			return r.RawResponse, err
		}
	}
	createItem := func(pk azcosmos.PartitionKey, body string, o *azcosmos.ItemOptions) func(context.Context, docs) (*http.Response, error) {
		return item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.CreateItem(ctx, pk, []byte(body), o)
		})
	}
	patchItem := func(p azcosmos.PatchOperations, o *azcosmos.ItemOptions) func(context.Context, docs) (*http.Response, error) {
		return item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.PatchItem(ctx, pk, "a", p, o)
		})
	}
	replace := func(id, body string, o *azcosmos.ItemOptions) func(context.Context, docs) (*http.Response, error) {
		return item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.ReplaceItem(ctx, pk, id, []byte(body), o)
		})
	}
	query := func(pk azcosmos.PartitionKey, text string, o *azcosmos.QueryOptions) func(context.Context, docs) (*http.Response, error) {
		return func(ctx context.Context, c docs) (*http.Response, error) {
			r, err := c.NewQueryItemsPager(text, pk, o).NextPage(ctx)
			return r.RawResponse, err
		}
	}
	no, nonsense := false, "nonsense"

	for _, tc := range []struct {
		name string
		want int
		do   func(context.Context, docs) (*http.Response, error)
	}{
		{"create", 201, createItem(pk, `{"id":"b","pk":"p"}`, nil)},
		{"create ignores If-Match", 201, createItem(pk, `{"id":"b","pk":"p"}`, ifStale)},
		{"create what exists", 409, createItem(pk, `{"id":"a","pk":"p"}`, nil)},
		{"create the same id in another partition", 201, createItem(other, `{"id":"a","pk":"other"}`, nil)},
		{"create with another partition key in the body", 400, createItem(other, `{"id":"b","pk":"p"}`, nil)},
		{"create without a partition key", 400, createItem(azcosmos.NewPartitionKey(), `{"id":"b","pk":"p"}`, nil)},
		{"create without an id", 400, createItem(pk, `{"pk":"p"}`, nil)},
		{"create with a number as id", 400, createItem(pk, `{"id":1,"pk":"p"}`, nil)},
		{"create with a slash in the id", 400, createItem(pk, `{"id":"a/b","pk":"p"}`, nil)},
		{"create with a long id", 400, createItem(pk, fmt.Sprintf(`{"id":%q,"pk":"p"}`, strings.Repeat("i", 1024)), nil)},
		{"create with broken JSON", 400, createItem(pk, `{"id":"b","pk":"p"`, nil)},
		{"create with a property twice", 400, createItem(pk, `{"id":"b","pk":"p","x":1,"x":2}`, nil)},
		{"create nested too deeply", 400, createItem(pk, `{"id":"b","pk":"p","x":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`, nil)},
		{"create beyond 2 MB", 413, createItem(pk, string(big), nil)},
		{"create with a trigger", 400, createItem(pk, `{"id":"b","pk":"p"}`, &azcosmos.ItemOptions{PreTriggers: []string{"t"}})},
		{"upsert what is new", 201, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.UpsertItem(ctx, pk, newDoc("b", 1), nil)
		})},
		{"upsert what exists", 200, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.UpsertItem(ctx, pk, newDoc("a", 1), nil)
		})},
		{"upsert with a stale etag", 412, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.UpsertItem(ctx, pk, newDoc("a", 1), ifStale)
		})},
		{"replace", 200, replace("a", `{"id":"a","pk":"p"}`, nil)},
		{"replace what is not there", 404, replace("b", `{"id":"b","pk":"p"}`, nil)},
		{"replace with a stale etag", 412, replace("a", `{"id":"a","pk":"p"}`, ifStale)},
		{"replace with another id", 400, replace("a", `{"id":"b","pk":"p"}`, nil)},
		{"replace with another partition key", 400, replace("a", `{"id":"a","pk":"q"}`, nil)},
		{"read", 200, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) { return c.ReadItem(ctx, pk, "a", nil) })},
		{"read ignores If-Match", 200, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.ReadItem(ctx, pk, "a", ifStale)
		})},
		{"read with weaker consistency", 200, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.ReadItem(ctx, pk, "a", &azcosmos.ItemOptions{ConsistencyLevel: &session})
		})},
		{"read what is not there", 404, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) { return c.ReadItem(ctx, pk, "b", nil) })},
		{"read in another partition", 404, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.ReadItem(ctx, other, "a", nil)
		})},
		{"patch", 200, patchItem(increment, nil)},
		{"patch with a stale etag", 412, patchItem(increment, ifStale)},
		{"patch with a false condition", 412, patchItem(patchOf(func(p *azcosmos.PatchOperations) {
			p.AppendSet("/n", 1)
			p.SetCondition("from c where c.n = 99")
		}), nil)},
		{"patch with a condition that is no query", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) {
			p.AppendSet("/n", 1)
			p.SetCondition("from c where")
		}), nil)},
		{"patch the id", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/id", "b") }), nil)},
		{"patch the partition key", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/pk", "b") }), nil)},
		{"replace by patch what is not there", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) { p.AppendReplace("/x", 1) }), nil)},
		{"remove by patch what is not there", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) { p.AppendRemove("/x") }), nil)},
		{"patch below what is not there", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/x/y", 1) }), nil)},
		{"increment a string", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/s", "x"); p.AppendIncrement("/s", 1) }), nil)},
		{"patch with eleven operations", 400, patchItem(patchOf(func(p *azcosmos.PatchOperations) {
			for range 11 {
				p.AppendSet("/n", 1)
			}
		}), nil)},
		{"delete", 204, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.DeleteItem(ctx, pk, "a", nil)
		})},
		{"delete what is not there", 404, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.DeleteItem(ctx, pk, "b", nil)
		})},
		{"delete with a stale etag", 412, item(func(ctx context.Context, c docs) (azcosmos.ItemResponse, error) {
			return c.DeleteItem(ctx, pk, "a", ifStale)
		})},
		{"query", 200, query(pk, "SELECT * FROM c", nil)},
		{"query that is not SQL", 400, query(pk, "SELECT FROM", nil)},
		{"query across partitions that is not allowed to", 400, query(azcosmos.NewPartitionKey(), "SELECT * FROM c", &azcosmos.QueryOptions{EnableCrossPartitionQuery: &no})},
		{"query with ORDER BY across partitions", 400, query(azcosmos.NewPartitionKey(), "SELECT * FROM c ORDER BY c.n", nil)},
		{"query with two orders and no composite index", 400, query(pk, "SELECT * FROM c ORDER BY c.n, c.id", nil)},
		{"query with a foreign token", 400, query(pk, "SELECT * FROM c", &azcosmos.QueryOptions{ContinuationToken: &nonsense})},
		{"container that is not there", 404, func(ctx context.Context, c docs) (*http.Response, error) {
			_, err := c.Delete(ctx, nil)
			if err != nil {
				return nil, err
			}
			r, err := c.ReadItem(ctx, pk, "a", nil)
			return r.RawResponse, err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, c := openEngine(t, embedded.Options{})
			createDocs(t, c, newDoc("a", 1))
			answer, err := tc.do(t.Context(), c)
			require.Equal(t, tc.want, clientStatus(t, answer, err), "%v", err)
			if err != nil {
				var refused *azcore.ResponseError
				require.ErrorAs(t, err, &refused)
				require.NotEmpty(t, refused.RawResponse.Header.Get("x-ms-request-charge"))
				require.NotEmpty(t, refused.RawResponse.Header.Get("x-ms-activity-id"))
				require.ErrorContains(t, err, `"message"`)
			}
		})
	}
}

func TestDatabasesAndContainers_AnswerWithTheStatusOfCosmos(t *testing.T) {
	ctx := t.Context()
	engine, c := openEngine(t, embedded.Options{})
	account := newClient(t, engine)
	_, err := account.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "db"}, nil)
	require.Equal(t, 409, clientStatus(t, nil, err))
	db, err := account.NewDatabase("db")
	require.NoError(t, err)
	ttl, day := int32(0), int32(24*60*60)
	key := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
	for _, tc := range []struct {
		name string
		p    azcosmos.ContainerProperties
		want int
	}{
		{"what exists", azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: key}, 409},
		{"without a partition key", azcosmos.ContainerProperties{ID: "x"}, 400},
		{"with no time to live", azcosmos.ContainerProperties{ID: "x", PartitionKeyDefinition: key, DefaultTimeToLive: &ttl}, 400},
		{"with a unique key of nothing", azcosmos.ContainerProperties{ID: "x", PartitionKeyDefinition: key, UniqueKeyPolicy: &azcosmos.UniqueKeyPolicy{
			UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/"}}},
		}}, 400},
		{"with manual indexing", azcosmos.ContainerProperties{ID: "x", PartitionKeyDefinition: key, IndexingPolicy: &azcosmos.IndexingPolicy{
			IndexingMode: azcosmos.IndexingModeConsistent,
		}}, 400},
		{"with a time to live, but no index", azcosmos.ContainerProperties{ID: "x", PartitionKeyDefinition: key, DefaultTimeToLive: &day, IndexingPolicy: &azcosmos.IndexingPolicy{
			IndexingMode: azcosmos.IndexingModeNone,
		}}, 400},
		{"with a slash in its id", azcosmos.ContainerProperties{ID: "a/b", PartitionKeyDefinition: key}, 400},
		{"as it should be", azcosmos.ContainerProperties{ID: "x", PartitionKeyDefinition: key}, 201},
	} {
		answer, err := db.CreateContainer(ctx, tc.p, nil)
		require.Equal(t, tc.want, clientStatus(t, answer.RawResponse, err), tc.name)
	}
	read, err := c.Read(ctx, nil)
	require.NoError(t, err)
	require.NotEmpty(t, read.ContainerProperties.ResourceID)
	policy := *read.ContainerProperties
	onlySlot(&policy)
	_, err = c.Replace(ctx, policy, nil)
	require.NoError(t, err)
	read, err = c.Read(ctx, nil)
	require.NoError(t, err)
	policy.IndexingPolicy.ExcludedPaths = append(policy.IndexingPolicy.ExcludedPaths, azcosmos.ExcludedPath{Path: `/"_etag"/?`})
	require.Equal(t, policy.IndexingPolicy, read.ContainerProperties.IndexingPolicy)
	policy.PartitionKeyDefinition.Paths = []string{"/other"}
	_, err = c.Replace(ctx, policy, nil)
	require.Equal(t, 400, clientStatus(t, nil, err))

	names := 0
	for pager := db.NewQueryContainersPager("SELECT * FROM root r WHERE r.id = @id", &azcosmos.QueryContainersOptions{
		QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: "x"}},
	}); pager.More(); {
		page, err := pager.NextPage(ctx)
		require.NoError(t, err)
		names += len(page.Containers)
	}
	require.Equal(t, 1, names)
	_, err = db.Delete(ctx, nil)
	require.NoError(t, err)
	_, err = db.Read(ctx, nil)
	require.Equal(t, 404, clientStatus(t, nil, err))
}

func TestRequestsThatNoClientSends_AreRefused(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	pkHeader := []string{"x-ms-documentdb-partitionkey", `["p"]`}
	for _, tc := range []struct {
		name   string
		want   int
		change func() *http.Request
	}{
		{"a good one", 200, func() *http.Request { return readRequest(t, engine) }},
		{"no signature", 401, func() *http.Request {
			r := readRequest(t, engine)
			r.Header.Del("Authorization")
			return r
		}},
		{"a signature of another resource", 401, func() *http.Request {
			return signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/b", "", pkHeader...)
		}},
		{"an old date", 403, func() *http.Request {
			return signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/a", "", append(pkHeader, "x-ms-date", "Mon, 02 Jan 2006 15:04:05 GMT")...)
		}},
		{"an unknown header, which is ignored", 200, func() *http.Request {
			return signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/a", "", append(pkHeader, "x-ms-new-meaning", "1")...)
		}},
		{"an unknown consistency", 400, func() *http.Request {
			return signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/a", "", append(pkHeader, "x-ms-consistency-level", "Total")...)
		}},
		{"a session from the future", 404, func() *http.Request {
			return signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/a", "", append(pkHeader, "x-ms-session-token", "0:-1#999999")...)
		}},
		{"a stored procedure", 400, func() *http.Request {
			return signedRequest(t, engine, "POST", "/dbs/db/colls/c/sprocs/x", "sprocs", containerLink+"/sprocs/x", "[]", pkHeader...)
		}},
		{"a change feed of all versions", 400, func() *http.Request {
			return signedRequest(t, engine, "GET", docsPath, "docs", containerLink, "", "A-IM", "Full-Fidelity Feed")
		}},
		{"a batch that is not atomic", 400, func() *http.Request {
			return signedRequest(t, engine, "POST", docsPath, "docs", containerLink, "[]", append(pkHeader, "x-ms-cosmos-is-batch-request", "True")...)
		}},
		{"a conditional read that finds nothing new", 304, func() *http.Request {
			read, err := c.ReadItem(t.Context(), pk, "a", nil)
			require.NoError(t, err)
			return signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/a", "", append(pkHeader, "If-None-Match", string(read.ETag))...)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer, body := sendRequest(t, engine, tc.change())
			require.Equal(t, tc.want, answer.StatusCode, body)
		})
	}
}
