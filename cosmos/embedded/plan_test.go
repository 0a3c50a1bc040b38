package embedded_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// features are query features that the Node client supports.
const features = "Aggregate, Distinct, MultipleOrderBy, OffsetAndLimit, OrderBy, Top, GroupBy, MultipleAggregates, NonValueAggregate"

// newPartitionedEngine creates the container wide, which has 24 documents in four physical partitions.
func newPartitionedEngine(t *testing.T) *embedded.Engine {
	t.Helper()
	engine, _ := openEngine(t, embedded.Options{})
	answer, body := sendRequest(t, engine, signedRequest(t, engine, "POST", "/dbs/db/colls", "colls", "dbs/db",
		`{"id":"wide","partitionKey":{"paths":["/pk"]}}`, "x-ms-offer-throughput", "40000"))
	require.Equal(t, 201, answer.StatusCode, body)
	require.Contains(t, body, `"version":2`, "clients hash keys as the container says")
	db, err := newClient(t, engine).NewDatabase("db")
	require.NoError(t, err)
	c, err := db.NewContainer("wide")
	require.NoError(t, err)
	for n := range 24 {
		key := fmt.Sprint("p", n%8)
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), fmt.Appendf(nil, `{"id":"i%d","pk":%q,"n":%d,"team":"t%d"}`, n, key, n, n%3), nil)
		require.NoError(t, err)
	}
	return engine
}

// sendQuery sends a query to the container wide, and returns the response and its body.
func sendQuery(t *testing.T, engine *embedded.Engine, query string, header ...string) (answer *http.Response, body string) {
	t.Helper()
	return sendRequest(t, engine, signedRequest(t, engine, "POST", "/dbs/db/colls/wide/docs", "docs", "dbs/db/colls/wide", fmt.Sprintf(`{"query":%q}`, query),
		append([]string{"Content-Type", "application/query+json"}, header...)...))
}

// eachRange runs a query in each physical partition, with pages of two results.
func eachRange(t *testing.T, engine *embedded.Engine, query string) (results [][]json.RawMessage) {
	t.Helper()
	for id := range 4 {
		var found []json.RawMessage
		for token := ""; ; {
			answer, body := sendQuery(t, engine, query, "x-ms-documentdb-isquery", "true", "x-ms-documentdb-partitionkeyrangeid", fmt.Sprint(id),
				"x-ms-max-item-count", "2", "x-ms-continuation", token)
			require.Equal(t, 200, answer.StatusCode, body)
			var page struct{ Documents []json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(body), &page))
			found = append(found, page.Documents...)
			if token = answer.Header.Get("x-ms-continuation"); token == "" {
				break
			}
		}
		results = append(results, found)
	}
	return results
}

func rewrittenText(t *testing.T, engine *embedded.Engine, query string) string {
	t.Helper()
	answer, body := sendQuery(t, engine, query, "x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", features)
	require.Equal(t, 200, answer.StatusCode, body)
	var plan struct {
		QueryInfo struct{ RewrittenQuery string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &plan))
	return strings.Replace(plan.QueryInfo.RewrittenQuery, "{documentdb-formattableorderbyquery-filter}", "true", 1)
}

func TestCrossPartitionQuery_SortsInEachPhysicalPartition(t *testing.T) {
	engine := newPartitionedEngine(t)
	var all []int
	for _, part := range eachRange(t, engine, rewrittenText(t, engine, "SELECT VALUE c.n FROM c WHERE c.n > 3 ORDER BY c.n DESC")) {
		require.NotEmpty(t, part)
		var keys []int
		for _, result := range part {
			var r struct {
				RID          string `json:"_rid"`
				OrderByItems []struct{ Item int }
				Payload      int
			}
			require.NoError(t, json.Unmarshal(result, &r))
			require.NotEmpty(t, r.RID)
			require.Equal(t, r.Payload, r.OrderByItems[0].Item)
			keys = append(keys, -r.Payload)
		}
		require.True(t, slices.IsSorted(keys), keys)
		all = append(all, keys...)
	}
	require.Len(t, all, 20)
}

func TestCrossPartitionQuery_AggregatesInEachPhysicalPartition(t *testing.T) {
	engine := newPartitionedEngine(t)
	total := 0
	for _, part := range eachRange(t, engine, rewrittenText(t, engine, "SELECT VALUE COUNT(1) FROM c")) {
		var r [][]struct{ Item int }
		require.NoError(t, json.Unmarshal([]byte("["+string(part[0])+"]"), &r))
		total += r[0][0].Item
	}
	require.Equal(t, 24, total)
	groups := 0
	for _, part := range eachRange(t, engine, rewrittenText(t, engine, "SELECT c.team, SUM(c.n) AS s FROM c GROUP BY c.team")) {
		groups += len(part)
	}
	require.Equal(t, 12, groups, "three teams in each of four parts")
	for _, part := range eachRange(t, engine, "SELECT TOP 3 c.id FROM c") {
		require.Len(t, part, 3)
	}
	whole, cut := eachRange(t, engine, "SELECT VALUE c.id FROM c"), eachRange(t, engine, "SELECT VALUE c.id FROM c OFFSET 1 LIMIT 2")
	for i := range whole {
		require.Equal(t, whole[i][1:3], cut[i])
	}
}

func TestQueryPlan_IsPartOfTheRefusal(t *testing.T) {
	engine := newPartitionedEngine(t)
	answer, body := sendQuery(t, engine, "SELECT TOP 1 * FROM c", "x-ms-documentdb-isquery", "true", "x-ms-documentdb-query-enablecrosspartition", "true")
	require.Equal(t, 400, answer.StatusCode)
	require.Equal(t, "1004", answer.Header.Get("x-ms-substatus"))
	var refusal struct{ AdditionalErrorInfo string }
	require.NoError(t, json.Unmarshal([]byte(body), &refusal))
	var plan struct {
		QueryInfo struct{ Top int }
	}
	require.NoError(t, json.Unmarshal([]byte(refusal.AdditionalErrorInfo), &plan))
	require.Equal(t, 1, plan.QueryInfo.Top)

	answer, body = sendQuery(t, engine, "SELECT TOP 1 * FROM c", "x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", "OrderBy")
	require.Equal(t, 400, answer.StatusCode)
	require.Contains(t, body, "Top")
}

func TestOrderedQuery_ContinuesWithAnotherResumeFilter(t *testing.T) {
	engine := newPartitionedEngine(t)
	text := rewrittenText(t, engine, "SELECT VALUE c.n FROM c ORDER BY c.n")
	at := []string{"x-ms-documentdb-isquery", "true", "x-ms-documentdb-partitionkeyrangeid", "0", "x-ms-max-item-count", "2"}
	answer, body := sendQuery(t, engine, text, at...)
	require.Equal(t, 200, answer.StatusCode, body)
	at = append(at, "x-ms-continuation", answer.Header.Get("x-ms-continuation"))
	_, want := sendQuery(t, engine, text, at...)
	answer, got := sendQuery(t, engine, strings.Replace(text, "WHERE (true", "WHERE ((c.n >= 0)", 1), at...)
	require.Equal(t, 200, answer.StatusCode, got)
	require.Equal(t, want, got)
	answer, got = sendQuery(t, engine, strings.Replace(text, "DESC", "ASC", 1)+" OFFSET 0 LIMIT 9", at...)
	require.Equal(t, 400, answer.StatusCode, got)
}

func TestContainer_KeepsItsHashVersion(t *testing.T) {
	engine := newPartitionedEngine(t)
	const link = "dbs/db/colls/wide"
	body := `{"id":"wide","partitionKey":{"paths":["/pk"]},"defaultTtl":9}`
	answer, text := sendRequest(t, engine, signedRequest(t, engine, "PUT", "/"+link, "colls", link, body))
	require.Equal(t, 200, answer.StatusCode, text)
	require.Contains(t, text, `"version":2`)
	answer, text = sendRequest(t, engine, signedRequest(t, engine, "PUT", "/"+link, "colls", link, strings.Replace(body, `]}`, `],"version":1}`, 1)))
	require.Equal(t, 400, answer.StatusCode, text)
}

func TestQuery_ReadsAPartOfAPhysicalPartition(t *testing.T) {
	engine := newPartitionedEngine(t)
	read := func(id int, low, high string) (int, []json.RawMessage) {
		answer, body := sendQuery(t, engine, "SELECT VALUE c.id FROM c", "x-ms-documentdb-isquery", "true", "x-ms-documentdb-partitionkeyrangeid", fmt.Sprint(id),
			"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", low, "x-ms-end-epk", high)
		var page struct{ Documents []json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		return answer.StatusCode, page.Documents
	}
	cut := false
	for id, whole := range eachRange(t, engine, "SELECT VALUE c.id FROM c") {
		middle := fmt.Sprintf("%d8%030d", id, 0)
		status, all := read(id, "", "FF")
		require.Equal(t, 200, status)
		require.ElementsMatch(t, whole, all)
		_, below := read(id, "", middle)
		_, above := read(id, middle, "FF")
		require.ElementsMatch(t, whole, append(slices.Clone(below), above...))
		cut = cut || len(below) > 0 && len(above) > 0
	}
	require.True(t, cut, "no partition has documents on both sides")
	status, _ := read(1, "z", "FF")
	require.Equal(t, 400, status)
}
