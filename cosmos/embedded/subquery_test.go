package embedded_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A clientPlan is the part of a query plan that a client needs to combine the results of physical partitions.
type clientPlan struct {
	QueryInfo struct {
		RewrittenQuery     string
		DistinctType       string
		Top, Offset, Limit *int
		OrderBy            []string
		GroupByExpressions []string
		Aggregates         []string
		Sums               map[string]*string `json:"groupByAliasToAggregateType"`
		HasSelectValue     bool
	}
}

// A planClient combines the results of physical partitions as Azure's clients do.
type planClient struct {
	t      testing.TB
	engine *embedded.Engine
	link   string
	ranges int
	page   int // maximum number of results in a page
}

func (c planClient) sendQuery(query string, header ...string) (body, token string) {
	c.t.Helper()
	header = append(header, "Content-Type", "application/query+json", "x-ms-documentdb-isquery", "true", "x-ms-max-item-count", fmt.Sprint(c.page))
	answer, body := sendRequest(c.t, c.engine, signedRequest(c.t, c.engine, "POST", "/"+c.link+"/docs", "docs", c.link, fmt.Sprintf(`{"query":%q}`, query), header...))
	require.Equal(c.t, 200, answer.StatusCode, "%s: %s", query, body)
	return body, answer.Header.Get("x-ms-continuation")
}

// readRange returns the results of a query in one physical partition.
func (c planClient) readRange(id int, query string) (results []any) {
	for token := ""; ; {
		body, next := c.sendQuery(query, inRange, fmt.Sprint(id), "x-ms-continuation", token)
		var page struct{ Documents []any }
		require.NoError(c.t, json.Unmarshal([]byte(body), &page))
		results = append(results, page.Documents...)
		if token = next; token == "" {
			return results
		}
	}
}

// query returns the combined results of all physical partitions.
func (c planClient) query(text string) []any {
	body, _ := c.sendQuery(text, "x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", features)
	var plan clientPlan
	require.NoError(c.t, json.Unmarshal([]byte(body), &plan))
	info := plan.QueryInfo
	if info.RewrittenQuery != "" {
		text = strings.Replace(info.RewrittenQuery, "{documentdb-formattableorderbyquery-filter}", "true", 1)
	}
	var results []any
	for id := range c.ranges {
		results = append(results, c.readRange(id, text)...)
	}
	switch {
	case len(info.OrderBy) > 0:
		results = c.mergeOrders(results, info.OrderBy)
	case len(info.Sums) > 0 || len(info.Aggregates) > 0 || len(info.GroupByExpressions) > 0:
		results = plan.mergeGroups(results)
	}
	if info.DistinctType != "None" {
		seen := map[string]bool{}
		results = slices.DeleteFunc(results, func(r any) bool {
			key := textOf(r)
			defer func() { seen[key] = true }()
			return seen[key]
		})
	}
	if info.Offset != nil {
		results = results[min(*info.Offset, len(results)):]
	}
	for _, limit := range []*int{info.Top, info.Limit} {
		if limit != nil {
			results = results[:min(*limit, len(results))]
		}
	}
	return results
}

func textOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// mergeOrders sorts results by numbers. A missing number sorts first.
func (c planClient) mergeOrders(results []any, orders []string) []any {
	item := func(r any, i int) float64 {
		key, _ := r.(map[string]any)["orderByItems"].([]any)[i].(map[string]any)
		n, ok := key["item"].(float64)
		if !ok {
			return -1
		}
		return n
	}
	slices.SortStableFunc(results, func(a, b any) int {
		for i, order := range orders {
			if d := cmp.Compare(item(a, i), item(b, i)); d != 0 {
				return map[string]int{"Ascending": d, "Descending": -d}[order]
			}
		}
		return 0
	})
	for i, r := range results {
		require.NotEmpty(c.t, r.(map[string]any)["_rid"], "clients need _rid")
		results[i] = r.(map[string]any)["payload"]
	}
	return results
}

// mergeGroups combines the partial aggregates of each group.
func (p clientPlan) mergeGroups(results []any) (merged []any) {
	parts := map[string][]any{} // partial results of all partitions, by group
	var names []string
	for _, r := range results {
		name := ""
		if o, ok := r.(map[string]any); ok {
			name, r = textOf(o["groupByItems"]), o["payload"]
		}
		if parts[name] == nil {
			names = append(names, name)
		}
		parts[name] = append(parts[name], r)
	}
	for _, name := range names {
		if p.QueryInfo.HasSelectValue {
			first := parts[name][0]
			if len(p.QueryInfo.Aggregates) > 0 {
				first = mergeSum(p.QueryInfo.Aggregates[0], parts[name], func(part any) any { return part.([]any)[0] })
			}
			if first != nil {
				merged = append(merged, first)
			}
			continue
		}
		result := map[string]any{}
		for column, function := range p.QueryInfo.Sums {
			value := parts[name][0].(map[string]any)[column]
			if function != nil {
				value = mergeSum(*function, parts[name], func(part any) any { return part.(map[string]any)[column] })
			}
			if value != nil {
				result[column] = value
			}
		}
		merged = append(merged, result)
	}
	return merged
}

// mergeSum combines the partial results of a numeric aggregate. In parts, nil stands for undefined.
func mergeSum(function string, parts []any, column func(part any) any) any {
	var sum, count float64
	var found []float64
	for _, part := range parts {
		partial, _ := column(part).(map[string]any)
		switch item := partial["item"].(type) {
		case float64:
			sum += item
			found = append(found, item)
		case map[string]any:
			s, _ := item["sum"].(float64)
			n, _ := item["count"].(float64)
			sum, count = sum+s, count+n
		}
	}
	switch {
	case function == "Average" && count > 0:
		return sum / count
	case function == "Count" || function == "Sum":
		return sum
	case function == "Min" && len(found) > 0:
		return slices.Min(found)
	case function == "Max" && len(found) > 0:
		return slices.Max(found)
	}
	return nil
}

// newSubqueryClients returns clients of two containers with the same documents. many has four physical partitions,
// single has one.
func newSubqueryClients(t *testing.T) (many, single planClient) {
	engine, _ := openEngine(t, embedded.Options{})
	db, err := newClient(t, engine).NewDatabase("db")
	require.NoError(t, err)
	for name, throughput := range map[string]string{"many": "40000", "single": "400"} {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "POST", "/dbs/db/colls", "colls", "dbs/db",
			fmt.Sprintf(`{"id":%q,"partitionKey":{"paths":["/pk"],"version":2}}`, name), "x-ms-offer-throughput", throughput))
		require.Equal(t, 201, answer.StatusCode, body)
		c, err := db.NewContainer(name)
		require.NoError(t, err)
		for n := range 40 {
			key, kind := fmt.Sprint("p", n%11), ""
			if n%4 > 0 {
				kind = fmt.Sprintf(`,"kind":"k%d"`, n%4)
			}
			doc := fmt.Appendf(nil, `{"id":"i%d","pk":%q,"n":%d,"o":{"n":%d}%s,"l":[{"n":%d},{"n":%d},{"n":%d}]}`, n, key, n, n*7%40, kind, n%5, n%3, n)
			_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), doc, nil)
			require.NoError(t, err)
		}
	}
	return planClient{t, engine, "dbs/db/colls/many", 4, 3}, planClient{t, engine, "dbs/db/colls/single", 1, 1000}
}

// drawSubquery draws a query over a subquery whose alias is s. The value s.n is a number.
func drawSubquery(r *rapid.T) (query string, isOrdered bool) {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(r, label) }
	window := []string{"", "TOP 2 ", "DISTINCT ", ""}
	source := pick("source",
		"c JOIN (SELECT "+pick("window", window...)+"VALUE t FROM t IN c.l"+pick("order", "", " ORDER BY t.n", " ORDER BY t.n DESC", " WHERE t.n > 1 ORDER BY t.n")+") s",
		"c JOIN (SELECT VALUE t FROM t IN c.l ORDER BY t.n DESC OFFSET 1 LIMIT 1) s",
		"c JOIN (SELECT COUNT(1) AS k, MAX(t.n) AS n FROM t IN c.l WHERE t.n > 1) s",
		"(SELECT VALUE c FROM c WHERE c.n > 7) s", "(SELECT c.n, c.kind FROM c) s", "(SELECT VALUE c.o FROM c) c JOIN (SELECT VALUE c) s", "c.o AS s",
		"(SELECT DISTINCT c.kind FROM c) s", "(SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind) s", "(SELECT SUM(c.n) AS n FROM c) s",
		"(SELECT g.n FROM (SELECT c.kind, MAX(c.n) AS n FROM c GROUP BY c.kind) g WHERE g.n > 37) s")
	canSort := strings.HasPrefix(source, "(SELECT VALUE") || strings.HasPrefix(source, "(SELECT c.n,") || source == "c.o AS s"
	where := pick("where", "", "", " WHERE s.n > 2")
	switch pick("select", "all", "distinct", "sums", "value", "groups", "groups of values", "order") {
	case "all":
		return "SELECT s.n, s.k, s.kind, s.o.n AS m FROM " + source + where, false
	case "distinct":
		return "SELECT DISTINCT s.kind FROM " + source + where, false
	case "sums":
		return "SELECT COUNT(1) AS a, SUM(s.n) AS b, AVG(s.n) AS c, MIN(s.n) AS d, MAX(s.n) AS e FROM " + source + where, false
	case "value":
		return "SELECT VALUE " + pick("aggregate", "COUNT", "SUM", "AVG", "MIN", "MAX") + "(s.n) FROM " + source + where, false
	case "groups":
		return "SELECT s.kind, SUM(s.n) AS n, AVG(s.n) AS m FROM " + source + where + " GROUP BY s.kind", false
	case "groups of values":
		return "SELECT VALUE s.n FROM " + source + where + " GROUP BY s.n", false
	}
	if !canSort {
		return "SELECT VALUE s.n FROM " + source + where, false
	}
	query = "VALUE s.n FROM " + source + where + " ORDER BY s.n" + pick("direction", "", " DESC")
	switch pick("window", "none", "top", "offset") {
	case "top":
		return "SELECT TOP 5 " + query, true
	case "offset":
		return "SELECT " + query + " OFFSET 3 LIMIT 6", true
	}
	return "SELECT " + query, true
}

func TestSubqueries_DoNotDependOnPhysicalPartitions(t *testing.T) {
	many, single := newSubqueryClients(t)
	rapid.Check(t, func(r *rapid.T) {
		query, isOrdered := drawSubquery(r)
		got, want := many.query(query), single.query(query)
		if !isOrdered {
			for _, results := range [][]any{got, want} {
				slices.SortFunc(results, func(a, b any) int { return cmp.Compare(textOf(a), textOf(b)) })
			}
		}
		require.Equal(r, textOf(want), textOf(got), query)
	})
}

func TestSubquery_OverTheContainerHasNoWindowAcrossPhysicalPartitions(t *testing.T) {
	many, single := newSubqueryClients(t)
	for query, want := range map[string]string{
		"SELECT VALUE COUNT(1) FROM (SELECT TOP 7 c.n FROM c) s":                                                          "[7]",
		"SELECT VALUE s.n FROM (SELECT c.n FROM c ORDER BY c.n DESC) s OFFSET 0 LIMIT 2":                                  "[39,38]",
		"SELECT VALUE s.n FROM (SELECT VALUE t FROM (SELECT c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 2) t WHERE t.n > 0) s": "[3,4]",
	} {
		require.Equal(t, want, textOf(single.query(query)), query)
		answer, body := sendRequest(t, many.engine, signedRequest(t, many.engine, "POST", "/"+many.link+"/docs", "docs", many.link, fmt.Sprintf(`{"query":%q}`, query),
			"Content-Type", "application/query+json", "x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", features))
		require.Equal(t, 400, answer.StatusCode)
		require.Contains(t, body, "move them to the outer query", query)
	}
}
