package steps_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

func TestNameOf_KnowsRequestsOfTheLedger(t *testing.T) {
	const (
		shard   = "shard|00|bucket"
		replace = `[{"ifMatch":"1","operationType":"Replace","resourceBody":{`
	)
	for _, tc := range []struct {
		method, key, id, body string
		kind                  string // kind of the request: batch or query
		want                  steps.Name
	}{
		{http.MethodGet, "bucket|bucket", "shards", "", "", steps.ReadShards},
		{http.MethodPost, "bucket|bucket", "", `{"id":"shards","kind":"bucket"}`, "", steps.StoreShards},
		{http.MethodGet, shard, "D5MMU", "", "", steps.ReadObjects},
		{http.MethodPost, shard, "", `{"query":"SELECT * FROM c WHERE c.id IN (@p0)","parameters":[{"name":"@p0","value":"D5MMU"}]}`, "query", steps.ReadObjects},
		{http.MethodPost, shard, "", `{"query":"SELECT * FROM c WHERE c.id IN (@p0, @p1)","parameters":[{"name":"@p1","value":"-r.00"}]}`, "query", steps.ReadSpilled},
		{http.MethodPost, shard, "", `{"query":"SELECT TOP 100 * FROM c WHERE c.id > @p0 ORDER BY c.id","parameters":[{"name":"@p0","value":"-z"}]}`, "query", steps.ReadObjects},
		{http.MethodPost, shard, "", `{"query":"SELECT TOP 1 * FROM c WHERE c.object = @p0"}`, "query", steps.ReadSpilled},
		{http.MethodPost, shard, "", `[{"operationType":"Create","resourceBody":{"kind":"object"}}]`, "batch", steps.CreateObjects},
		{http.MethodPost, shard, "", `[{"ifMatch":"1","operationType":"Replace","resourceBody":{"kind":"object"}}]`, "batch", steps.UpdateObjects},
		{http.MethodPost, shard, "", `[{"ifMatch":"1","operationType":"Replace"},{"operationType":"Create","resourceBody":{"kind":"row"}}]`, "batch", steps.Spill},
		{http.MethodPost, shard, "", `[{"ifMatch":"1","operationType":"Replace"},{"operationType":"Create","resourceBody":{"kind":"change"}}]`, "batch", steps.Change},
		{http.MethodPatch, shard, "D5MMU", `{"operations":[{"op":"set","path":"/watched","value":true}]}`, "", steps.Mark},
		{http.MethodDelete, shard, "-c.00.00000000000000000001", "", "", steps.RemoveChange},
		{http.MethodDelete, shard, "-t.00.00000000000000000001", "", "", steps.RemoveChange},
		{http.MethodPost, shard, "", `[{"id":"-t.00.00000000000000000001","operationType":"Delete"}]`, "batch", steps.RemoveChange},
		{http.MethodPost, shard, "", `{"query":"SELECT * FROM c WHERE c.id >= @p0","parameters":[{"name":"@p0","value":"-c.00."}]}`, "query", steps.ReadChanges},
		{http.MethodPost, shard, "", `{"query":"SELECT c.resource FROM c WHERE c.id >= '-c.'"}`, "query", steps.ReadChanges},
		{http.MethodPost, shard, "", replace + `"current":{"attributes":"{}"}}}]`, "batch", steps.Amend},
		{http.MethodPost, shard, "", replace + `"forgottenRows":1}}]`, "batch", steps.Forget},
		{http.MethodPost, shard, "", `[{"ifMatch":"1","operationType":"Delete"}]`, "batch", steps.Forget},
		{http.MethodGet, "sweep", "sweep", "", "", steps.ReadSweep},
		{http.MethodPut, "sweep", "sweep", `{"kind":"sweep"}`, "", steps.MoveSweep},
		{http.MethodPost, "jobs", "", `{"query":"SELECT * FROM c WHERE c.live = true"}`, "query", steps.ReadJobs},
		{http.MethodPatch, "jobs", "crawl.1", `{"operations":[{"op":"set","path":"/kind","value":"job"}]}`, "", steps.ReadJobs},
		{http.MethodPost, "jobs", "", `[{"operationType":"Create","resourceBody":{"kind":"job"}},{"operationType":"Create"}]`, "batch", steps.StartJob},
		{http.MethodPost, "jobs", "", replace + `"kind":"job","owner":"node"}}]`, "batch", steps.ClaimJob},
		{http.MethodPost, "jobs", "", replace + `"kind":"job","cursor":"{}"}}]`, "batch", steps.MoveJob},
		{http.MethodPost, "jobs", "", replace + `"kind":"job","cursor":"{}","ended":"now"}},{"operationType":"Delete"}]`, "batch", steps.EndJob},
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
