package query

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCrossPartition_IsWhatClientsExpect(t *testing.T) {
	const filter = "{documentdb-formattableorderbyquery-filter}"
	params := map[string]Value{"@n": {Kind: Number, Num: 3}}
	for _, tc := range []struct{ query, text, needs string }{
		{"SELECT * FROM c WHERE c.a = 1", "", ""},
		{"SELECT TOP @n * FROM c", "SELECT TOP 3 * FROM c AS c", "Top"},
		{"SELECT c.a FROM c OFFSET 2 LIMIT @n", `SELECT c["a"] FROM c AS c OFFSET 0 LIMIT 5`, "OffsetAndLimit"},
		{"SELECT * FROM c OFFSET 2 LIMIT 2147483647", `SELECT * FROM c AS c OFFSET 0 LIMIT 2147483647`, "OffsetAndLimit"},
		{
			"SELECT * FROM c ORDER BY c.a DESC", `SELECT c["_rid"] AS _rid, [{"item": c["a"]}] AS orderByItems, c AS payload FROM c AS c WHERE (` +
				filter + ` AND true) ORDER BY c["a"] DESC`, "OrderBy",
		},
		{
			"SELECT TOP 2 c.a, 1 FROM c WHERE c.b ORDER BY c.a, c.b", `SELECT TOP 2 c["_rid"] AS _rid, [{"item": c["a"]}, {"item": c["b"]}] AS orderByItems, ` +
				`{"a": c["a"], "$1": 1} AS payload FROM c AS c WHERE (` + filter + ` AND c["b"]) ORDER BY c["a"] ASC, c["b"] ASC`, "MultipleOrderBy OrderBy Top",
		},
		{
			"SELECT DISTINCT TOP 2 VALUE c.a FROM c ORDER BY c.a", `SELECT c["_rid"] AS _rid, [{"item": c["a"]}] AS orderByItems, c["a"] AS payload FROM c AS c WHERE (` +
				filter + ` AND (true AND IS_DEFINED(c["a"]))) ORDER BY c["a"] ASC`, "Distinct OrderBy Top",
		},
		{
			"SELECT c.a FROM (SELECT VALUE c.o FROM c WHERE c.b) AS c WHERE c.d = 1 ORDER BY c.a", `SELECT root["_rid"] AS _rid, [{"item": c["a"]}] AS orderByItems, {"a": c["a"]} AS payload ` +
				`FROM root AS root JOIN (SELECT VALUE c["o"] FROM root AS c WHERE c["b"]) AS c WHERE (` + filter + ` AND (c["d"] = 1)) ORDER BY c["a"] ASC`, "OrderBy",
		},
		{
			"SELECT * FROM root.o AS d ORDER BY d.a", `SELECT root1["_rid"] AS _rid, [{"item": d["a"]}] AS orderByItems, d AS payload FROM root1 AS root1 JOIN root1["o"] AS d WHERE (` +
				filter + ` AND true) ORDER BY d["a"] ASC`, "OrderBy",
		},
		{"SELECT DISTINCT c.a FROM c", `SELECT DISTINCT c["a"] FROM c AS c`, "Distinct"},
		{"SELECT VALUE COUNT(1) FROM c", `SELECT VALUE [{"item": COUNT(1)}] FROM c AS c`, "Aggregate"},
		{"SELECT VALUE AVG(c.a) FROM c", `SELECT VALUE [{"item": {"sum": SUM(c["a"]), "count": COUNT(c["a"])}}] FROM c AS c`, "Aggregate"},
		{
			"SELECT MIN(c.a) AS m, SUM(c.b) FROM c", `SELECT {"m": {"item": MIN(c["a"]), "item2": {"min": MIN(c["a"]), "count": COUNT(c["a"])}}, ` +
				`"$1": {"item": SUM(c["b"])}} AS payload FROM c AS c`, "MultipleAggregates NonValueAggregate",
		},
		{
			"SELECT DISTINCT c.a, MAX(c.b) AS m FROM c GROUP BY c.a OFFSET 1 LIMIT 2", `SELECT [{"item": c["a"]}] AS groupByItems, ` +
				`{"a": c["a"], "m": {"item": MAX(c["b"]), "item2": {"max": MAX(c["b"]), "count": COUNT(c["b"])}}} AS payload FROM c AS c GROUP BY c["a"]`,
			"Distinct GroupBy NonValueAggregate OffsetAndLimit",
		},
		{"SELECT VALUE c.a FROM c GROUP BY c.a", `SELECT [{"item": c["a"]}] AS groupByItems, c["a"] AS payload FROM c AS c GROUP BY c["a"]`, "GroupBy"},
		{
			"SELECT VALUE {n: COUNT(1), s: SUM(c.b)} FROM c", `SELECT {"n": {"item": COUNT(1)}, "s": {"item": SUM(c["b"])}} AS payload FROM c AS c`,
			"MultipleAggregates NonValueAggregate",
		},
		{"SELECT VALUE COUNT(1) FROM c ORDER BY c.a", `SELECT VALUE [{"item": COUNT(1)}] FROM c AS c`, "Aggregate"},
		{"SELECT VALUE COUNT(1) FROM c GROUP BY c.a", `SELECT [{"item": c["a"]}] AS groupByItems, [{"item": COUNT(1)}] AS payload FROM c AS c GROUP BY c["a"]`, "Aggregate GroupBy"},
	} {
		s, err := mustParse(t, tc.query, params).CrossPartition()
		require.NoError(t, err, tc.query)
		require.Equal(t, tc.text, s.Text, tc.query)
		require.Equal(t, tc.needs, strings.Join(s.Needs(), " "), tc.query)
		if s.Text != "" {
			mustParse(t, strings.Replace(s.Text, filter, "true", 1), params)
		}
	}
	for _, query := range []string{"SELECT VALUE COUNT(1) + 1 FROM c", "SELECT VALUE {n: 1 + COUNT(1)} FROM c", "SELECT VALUE [COUNT(1)] FROM c", "SELECT c.a, -SUM(c.b) AS s FROM c GROUP BY c.a"} {
		_, err := mustParse(t, query, nil).CrossPartition()
		require.ErrorContains(t, err, "an expression of aggregates", query)
	}
}

func TestCrossPartition_ReportsWhetherEqualResultsAreAdjacent(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT c.a FROM c ORDER BY c.a": "None", "SELECT DISTINCT c.a FROM c": "Unordered",
		"SELECT DISTINCT c.a FROM c ORDER BY c.a": "Ordered", "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a": "Ordered",
		"SELECT DISTINCT c.b, c.a FROM c ORDER BY c.a, c.b": "Ordered", "SELECT DISTINCT c.a, c.b FROM c ORDER BY c.a": "Unordered",
		"SELECT DISTINCT c.a FROM c ORDER BY c.b": "Unordered", "SELECT DISTINCT * FROM c ORDER BY c.b": "Unordered",
	} {
		s, err := mustParse(t, query, nil).CrossPartition()
		require.NoError(t, err, query)
		require.Equal(t, want, s.Distinct, query)
	}
}

func TestSameOrder_IgnoresOnlyTheResumeFilter(t *testing.T) {
	params := map[string]Value{"@n": {Kind: Number, Num: 3}}
	s, err := mustParse(t, "SELECT c.a FROM c WHERE c.b = @n ORDER BY c.a", params).CrossPartition()
	require.NoError(t, err)
	base := func(text, filter string, params map[string]Value) string {
		return mustParse(t, strings.Replace(text, orderFilter, filter, 1), params).SameOrder()
	}
	first := base(s.Text, "true", params)
	require.NotEmpty(t, first)
	require.Equal(t, first, base(s.Text, `(c["a"] >= 5 AND c.b < 2)`, params))
	require.NotEqual(t, first, base(s.Text, "true", map[string]Value{"@n": {Kind: Number, Num: 4}}))
	require.NotEqual(t, first, base(strings.Replace(s.Text, `c["b"] =`, `c["b"] >`, 1), "true", params))
	require.Empty(t, mustParse(t, "SELECT c.a FROM c WHERE c.b = 1 AND c.a = 2 ORDER BY c.a", nil).SameOrder())
}
