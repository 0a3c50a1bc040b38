package steps_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

func TestNameOf_KnowsRequestsOfThePushSide(t *testing.T) {
	for _, tc := range []struct {
		method, container, key, id, body string
		kind                             string // kind of the request: batch or query
		want                             steps.Name
	}{
		{http.MethodPut, "streams", "topic|t|0", "head", `{"priorities":{"0":{"runs":[]}}}`, "", steps.Append},
		{http.MethodPost, "streams", "topic|t|0", "", `[{"operationType":"Replace"}]`, "batch", steps.Append},
		{http.MethodPost, "streams", "topic|t|1", "", `{"id":"head","priorities":{"0":{"page":0,"first":7}}}`, "", steps.OpenSegment},
		{http.MethodGet, "streams", "topic|t|0", "head", "", "", steps.ReadStream},
		{http.MethodPatch, "streams", "topic|t|0", "id|x", "{}", "", steps.ReadStream},
		{http.MethodPost, "cursors", "s|a", "", `{"kind":"cursor"}`, "", steps.CreateCursor},
		{http.MethodPost, "cursors", "|shard|3", "", `{"kind":"entry"}`, "", steps.CreateCursor},
		{http.MethodPut, "cursors", "s|a", "cursor", `{"kind":"cursor"}`, "", steps.Settle},
		{http.MethodPost, "cursors", "s|a", "", `[{"operationType":"Replace"}]`, "batch", steps.Settle},
		{http.MethodPatch, "cursors", "|shard|3", "s|a", "{}", "", steps.ListRetry},
		{http.MethodPatch, "cursors", "|shard|3", "s|a", `{"operations":[{"op":"set","path":"/stream"}]}`, "", steps.CreateCursor},
		{http.MethodDelete, "cursors", "|shard|3", "s|a", "", "", steps.Unlist},
		{http.MethodPost, "cursors", "s|a", "", `[{"resourceBody":{"retired":true}}]`, "batch", steps.Retire},
		{http.MethodPatch, "cursors", "|nodes", "node|n", `{}`, "", steps.Beat},
		{http.MethodPost, "cursors", "|nodes", "", `{"kind":"assignment","owners":{}}`, "", steps.Assign},
		{http.MethodDelete, "cursors", "|nodes", "node|n", "", "", steps.Leave},
		{http.MethodPost, "cursors", "s|a", "", `{"kind":"definition"}`, "", steps.Define},
		{http.MethodPut, "cursors", "w|o|a", "cursor", `{"kind":"cursor","cancelled":1}`, "", steps.Cancel},
		{http.MethodPost, "cursors", "w|o|a", "", `[{"resourceBody":{"cancelled":1,"retired":true}}]`, "batch", steps.Retire},
		{http.MethodPatch, "cursors", "|resource|a", "resource", `{"operations":[{"op":"set","path":"/watched","value":true}]}`, "", steps.Mark},
		{http.MethodPost, "cursors", "|resource|a", "", `{"absent":true,"watched":true}`, "", steps.Mark},
		{http.MethodPatch, "cursors", "|resource|a", "resource", `{"operations":[{"op":"set","path":"/kind"}]}`, "", steps.ReadDocument},
		{http.MethodPost, "cursors", "|resource|a", "", `[{"operationType":"Replace"}]`, "batch", steps.Change},
		{http.MethodPut, "cursors", "|resource|a", "resource", `{"body":"1"}`, "", steps.PutDocument},
		{http.MethodDelete, "cursors", "|resource|a", "resource", "", "", steps.PutDocument},
		{http.MethodDelete, "cursors", "|resource|a", "|change|resource|1", "", "", steps.RemoveChange},
		{http.MethodGet, "cursors", "|resource|a", "resource", "", "", steps.ReadDocument},
		{http.MethodPost, "cursors", "|resource|a", "", `{"query":"SELECT"}`, "query", steps.ReadDocument},
		{http.MethodPut, "cursors", "|turns", "changes", `{"kind":"turn"}`, "", steps.TakeTurn},
		{http.MethodGet, "cursors", "|turns", "changes", "", "", steps.ReadOther},
		{http.MethodPost, "cursors", "|watches|o", "", `{"kind":"watch"}`, "", steps.StoreWatch},
		{http.MethodDelete, "cursors", "|watches|o", "a", "", "", steps.DeleteWatch},
		{http.MethodGet, "cursors", "|watches|o", "a", "", "", steps.ReadOther},
		{http.MethodPatch, "bundles", "a", "b", `{"operations":[{"op":"set","path":"/watched","value":true}]}`, "", steps.Mark},
		{http.MethodGet, "cursors", "s|a", "cursor", "", "", steps.ReadCursor},
		{http.MethodPost, "cursors", "s|a", "", `{"query":"SELECT"}`, "query", steps.ReadRetries},
		{http.MethodPost, "cursors", "|shard|3", "", `{"query":"SELECT"}`, "query", steps.ReadShard},
		{http.MethodPost, "cursors", "|nodes", "", `{"query":"SELECT"}`, "query", steps.ReadNodes},
	} {
		url := "https://x/dbs/messagehub/colls/" + tc.container + "/docs"
		if tc.id != "" {
			url += "/" + strings.ReplaceAll(tc.id, "|", "%7C")
		}
		req, err := http.NewRequestWithContext(t.Context(), tc.method, url, strings.NewReader(tc.body))
		require.NoError(t, err)
		req.Header.Set("x-ms-documentdb-partitionkey", `["`+tc.key+`"]`)
		switch tc.kind {
		case "batch":
			req.Header.Set("x-ms-cosmos-is-batch-request", "True")
		case "query":
			req.Header.Set("x-ms-documentdb-query", "True")
		}
		require.Equal(t, tc.want, steps.NameOf(req), tc)
		require.Equal(t, !strings.HasPrefix(string(tc.want), "read"), steps.NameOf(req).IsWrite())
	}
}
