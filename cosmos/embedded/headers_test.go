package embedded_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// TestResponses_HaveTheHeadersThatClientsRead checks one response of each kind.
func TestResponses_HaveTheHeadersThatClientsRead(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{Consistency: "Session"})
	header := func(r azcosmos.Response) http.Header { return r.RawResponse.Header }
	content := &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
	minimal, err := c.CreateItem(t.Context(), pk, newDoc("a", 1), nil)
	require.NoError(t, err)
	require.Empty(t, minimal.Value, "a write has no body unless it is asked for")
	full, err := c.UpsertItem(t.Context(), pk, newDoc("a", 2), content)
	require.NoError(t, err)
	require.Contains(t, string(full.Value), `"_etag":`+strconv.Quote(string(full.ETag)), "the etag in the body is that of the header")
	deleted, err := c.DeleteItem(t.Context(), pk, "a", content)
	require.NoError(t, err)
	require.Empty(t, deleted.Value)
	batch := func(content bool, read bool) azcosmos.TransactionalBatchResponse {
		b := c.NewTransactionalBatch(pk)
		b.UpsertItem(newDoc("a", 3), nil)
		if read {
			b.ReadItem("a", nil)
		}
		answer, err := c.ExecuteTransactionalBatch(t.Context(), b, &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: content})
		require.NoError(t, err)
		return answer
	}
	require.Empty(t, batch(false, false).OperationResults[0].ResourceBody)
	require.NotEmpty(t, batch(true, false).OperationResults[0].ResourceBody)
	require.NotEmpty(t, batch(false, true).OperationResults[0].ResourceBody, "a batch that reads has all its bodies")
	require.NotEmpty(t, batch(false, false).OperationResults[0].ETag)
	read, err := c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	page := func(o *azcosmos.QueryOptions) azcosmos.QueryItemsResponse {
		page, err := c.NewQueryItemsPager("SELECT * FROM c", pk, o).NextPage(t.Context())
		require.NoError(t, err)
		return page
	}
	plain := page(nil)
	require.Contains(t, header(plain.Response).Get("x-ms-documentdb-query-metrics"), "retrievedDocumentCount=1;")
	require.Empty(t, header(plain.Response).Get("x-ms-cosmos-index-utilization"), "only on demand")
	require.NotEmpty(t, header(page(&azcosmos.QueryOptions{PopulateIndexMetrics: true}).Response).Get("x-ms-cosmos-index-utilization"))
	feed, err := c.ReadChangeFeed(t.Context(), &azcosmos.ChangeFeedOptions{FeedRange: whole})
	require.NoError(t, err)
	offer, err := c.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "400", header(offer.Response).Get("x-ms-cosmos-min-throughput"))
	require.Equal(t, "false", header(offer.Response).Get("x-ms-offer-replace-pending"))

	for name, tc := range map[string]struct {
		header http.Header
		etag   azcore.ETag
	}{
		"create": {header(minimal.Response), minimal.ETag}, "upsert": {header(full.Response), full.ETag}, "read": {header(read.Response), read.ETag},
		"delete": {header: header(deleted.Response)}, "query": {header: header(plain.Response)}, "feed": {header: feed.RawResponse.Header},
		"batch": {header: header(batch(false, false).Response)},
	} {
		charge, err := strconv.ParseFloat(tc.header.Get("x-ms-request-charge"), 64)
		require.NoError(t, err, name)
		require.Positive(t, charge, name)
		require.Regexp(t, `^0:-1#\d+$`, tc.header.Get("x-ms-session-token"), name)
		require.NotEmpty(t, tc.header.Get("x-ms-activity-id"), name)
		require.Equal(t, "application/json", tc.header.Get("Content-Type"), name)
		require.Equal(t, tc.etag, azcore.ETag(tc.header.Get("etag"))[:len(tc.etag)], name)
		if tc.etag != "" {
			require.Regexp(t, `^"[0-9a-f-]{36}"$`, tc.etag, name)
		}
	}
	require.Positive(t, engine.RequestUnits())
}
