package steps_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

func TestRequestsOfTheLedgerHaveNames(t *testing.T) {
	const shard = "shard|00|bucket"
	for _, tc := range []struct {
		method, key, id, body string
		kind                  string // of the request: batch or query
		want                  steps.Name
	}{
		{http.MethodGet, "bucket|bucket", "shards", "", "", steps.ReadShards},
		{http.MethodPost, "bucket|bucket", "", `{"id":"shards","kind":"bucket"}`, "", steps.StoreShards},
		{http.MethodGet, shard, "D5MMU", "", "", steps.ReadObjects},
		{http.MethodPost, shard, "", `{"query":"SELECT * FROM c WHERE c.id IN (@p0)","parameters":[{"name":"@p0","value":"D5MMU"}]}`, "query", steps.ReadObjects},
		{http.MethodPost, shard, "", `{"query":"SELECT * FROM c WHERE c.id IN (@p0, @p1)","parameters":[{"name":"@p1","value":"-r.00"}]}`, "query", steps.ReadSpilled},
		{http.MethodPost, shard, "", `{"query":"SELECT TOP 1 * FROM c WHERE c.object = @p0"}`, "query", steps.ReadSpilled},
		{http.MethodPost, shard, "", `[{"operationType":"Create","resourceBody":{"kind":"object"}}]`, "batch", steps.CreateObjects},
		{http.MethodPost, shard, "", `[{"ifMatch":"1","operationType":"Replace","resourceBody":{"kind":"object"}}]`, "batch", steps.UpdateObjects},
		{http.MethodPost, shard, "", `[{"ifMatch":"1","operationType":"Replace"},{"operationType":"Create","resourceBody":{"kind":"row"}}]`, "batch", steps.Spill},
		{http.MethodPost, shard, "", `[{"ifMatch":"1","operationType":"Replace"},{"operationType":"Create","resourceBody":{"kind":"change"}}]`, "batch", steps.Change},
		{http.MethodPatch, shard, "D5MMU", `{"operations":[{"op":"set","path":"/watched","value":true}]}`, "", steps.Mark},
		{http.MethodDelete, shard, "-c.00.00000000000000000001", "", "", steps.RemoveChange},
		{http.MethodPost, shard, "", `{"query":"SELECT * FROM c WHERE c.id >= @p0","parameters":[{"name":"@p0","value":"-c.00."}]}`, "query", steps.ReadChanges},
		{http.MethodPost, shard, "", `{"query":"SELECT c.resource FROM c WHERE c.id >= '-c.'"}`, "query", steps.ReadChanges},
	} {
		url := "https://x/dbs/messagehub/colls/objects/docs"
		if tc.id != "" {
			url += "/" + tc.id
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
