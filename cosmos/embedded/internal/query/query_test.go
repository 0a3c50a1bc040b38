package query

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

var params = map[string]Value{
	"@n": {Kind: Number, Num: 1}, "@s": {Kind: String, Text: []byte("x")},
	"@list": {Kind: Array, Text: []byte(`[1,"x"]`)}, "@o": {Kind: Object, Text: []byte(`{"a":1}`)},
}

func TestParse_RefusesUnknownSyntaxWithItsPosition(t *testing.T) {
	for text, at := range map[string]int{
		"":                                                                    0,
		"SELECT * ":                                                           9,
		"SELECT DISTINCT FROM c":                                              16,
		"SELECT * FROM c JOIN d IN c.list":                                    0,
		"SELECT d FROM c JOIN d IN e.list":                                    26,
		"SELECT d FROM c JOIN c IN c.list":                                    21,
		"SELECT d FROM c JOIN d IN c.list[c.n]":                               34,
		"SELECT * FROM c GROUP BY c.a":                                        16,
		"SELECT c.b FROM c GROUP BY c.a":                                      7,
		"SELECT COUNT(1), c.a FROM c":                                         17,
		"SELECT COUNT(SUM(c.a)) FROM c":                                       13,
		"SELECT * FROM c WHERE COUNT(1) > 1":                                  22,
		"SELECT c.a FROM c GROUP BY c.a ORDER BY c.a":                         31,
		"SELECT c.a FROM c GROUP BY c.a HAVING c.a > 1":                       31,
		"SELECT a FROM c":                                                     7,
		"SELECT * FROM c d WHERE c.a = 1":                                     24,
		"SELECT * FROM c WHERE SOUNDEX(c.a)":                                  22,
		"SELECT * FROM c WHERE NOW('d') > c.a":                                22,
		"SELECT * FROM c ORDER BY RANK FullTextScore(c.a, 'x')":               25,
		"SELECT * FROM c WHERE udf.f(c.a)":                                    22,
		"SELECT * FROM c WHERE c.a = @none":                                   28,
		"SELECT * FROM c WHERE c.a = 'x":                                      28,
		"SELECT * FROM c WHERE c.a = 'x\\q'":                                  30,
		"SELECT * FROM c WHERE c.a = 1 c":                                     30,
		"SELECT * FROM c WHERE c.a = 1 = 1":                                   30,
		"SELECT * FROM c WHERE c.a = 1 AND":                                   33,
		"SELECT * FROM c WHERE c.a IN ()":                                     30,
		"SELECT * FROM c WHERE c.a IN (SELECT 1)":                             30,
		"SELECT * FROM c WHERE (c.a = 1":                                      30,
		"SELECT * FROM c WHERE c.a NOT = 1":                                   30,
		"SELECT * FROM c WHERE c.a BETWEEN 1 OR 2":                            36,
		"SELECT * FROM c WHERE c.a LIKE":                                      30,
		"SELECT * FROM c WHERE c.a LIKE 'x' ESCAPE 'ab'":                      42,
		"SELECT * FROM c WHERE c.a = 1;":                                      29,
		"SELECT * FROM c WHERE c.a = 1 ? 2":                                   33,
		"SELECT * FROM c WHERE c.a = 1.2.3":                                   28,
		"SELECT * FROM c WHERE c.a[1.5] = 1":                                  26,
		"SELECT * FROM c WHERE c.a[-1] = 1":                                   26,
		"SELECT * FROM c WHERE c. = 1":                                        25,
		"SELECT * FROM c WHERE EXISTS c.a":                                    29,
		"SELECT VALUE (SELECT VALUE 1 FROM c)":                                34,
		"SELECT s FROM s IN (SELECT DISTINCT c.a FROM c)":                     14,
		"SELECT x FROM (SELECT TOP 1 VALUE c FROM c) x ORDER BY x.a":          55,
		"SELECT ARRAY(SELECT VALUE x FROM x IN c.a ORDER BY LOWER(x)) FROM c": 51,
		"SELECT VALUE COUNT(1) FROM c ORDER BY LOWER(c.a)":                    38,
		"SELECT c.a AS '' FROM c":                                             14,
		"SELECT c.a AS 'b', c.c AS b FROM c":                                  19,
		"SELECT c.a 'b' FROM c":                                               11,
		"SELECT TRIM('a', 'b', 'c')":                                          7,
		"SELECT RAND(1)":                                                      7,
		"SELECT * FROM c ORDER BY 1":                                          25,
		"SELECT * FROM c ORDER BY c":                                          25,
		"SELECT * FROM c ORDER BY LOWER(c.a)":                                 25,
		"SELECT d FROM c JOIN d IN c.a ORDER BY d.x":                          39,
		"SELECT d FROM c JOIN d IN OBJECTTOARRAY(c.a)":                        26,
		"SELECT x FROM (SELECT VALUE {a: c.a + 1} FROM c) x ORDER BY x.a":     60,
		"SELECT x FROM (SELECT VALUE {a: c.a} FROM c) x ORDER BY x.b":         56,
		"SELECT x FROM (SELECT c.a FROM c) x ORDER BY x":                      45,
		"SELECT * FROM c ORDER c.a":                                           22,
		"SELECT TOP -1 * FROM c":                                              11,
		"SELECT TOP 1.5 * FROM c":                                             11,
		"SELECT TOP @s * FROM c":                                              11,
		"SELECT TOP 1 * FROM c OFFSET 1 LIMIT 1":                              22,
		"SELECT * FROM c OFFSET 1":                                            24,
		"SELECT c.a, c.a FROM c":                                              12,
		"SELECT VALUE SUM(c.a, c.b) FROM c":                                   13,
		"SELECT VALUE COUNT(*) FROM c":                                        19,
		"SELECT VALUE {'a': 1, 'a': 2} FROM c":                                22,
		"SELECT VALUE {1: 1} FROM c":                                          14,
		"SELECT VALUE [1, FROM c":                                             17,
		"SELECT * FROM c WHERE IS_NULL(c.a, 1)":                               22,
		"SELECT * FROM c WHERE CONCAT(c.a)":                                   22,
		"SELECT * FROM c WHERE REGEXMATCH(c.a, '(')":                          38,
		"SELECT * FROM c WHERE c.a # 1":                                       26,
		"SELECT * FROM c -- no end\n WHERE":                                   32,
		"SELECT c.a AS value FROM c":                                          14,
		"SELECT * FROM 'c'":                                                   14,
		"SELECT * FROM c IN 1":                                                19,
		"SELECT '\xff' FROM c":                                                8,
		"INSERT c":                                                            0,
	} {
		_, err := Parse(context.Background(), text, params)
		var refused *Error
		require.ErrorAs(t, err, &refused, text)
		assert.Equal(t, at, refused.Position, "%s: %v", text, err)
	}
}

func TestParse_NamesWhatItRefuses(t *testing.T) {
	for _, name := range []string{"ST_DISTANCE", "ST_WITHIN", "VECTORDISTANCE", "FULLTEXTSCORE", "RRF", "udf.REGEX"} {
		_, err := Parse(context.Background(), "SELECT "+name+"(c.a, c.b) FROM c", nil)
		require.ErrorContains(t, err, name)
	}
}

func TestParseCondition_ReadsTheDocumentOnly(t *testing.T) {
	for text, at := range map[string]int{
		"WHERE c.a = 1": 0, "FROM c": 6, "FROM c WHERE c.a = 1 ORDER BY c.a": 21,
		"FROM c JOIN d IN c.a WHERE d": 0, "FROM c.a WHERE true": 5, "FROM c WHERE d.a": 13,
	} {
		_, err := ParseCondition(context.Background(), text)
		var refused *Error
		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, at, refused.Position, "%s: %v", text, err)
	}
	q, err := ParseCondition(context.Background(), "FROM c WHERE ARRAY_CONTAINS(c.a, 2) AND EXISTS(SELECT * FROM x IN c.a WHERE x > 1)")
	require.NoError(t, err)
	require.True(t, matchesDocument(q, []byte(`{"a":[1,2]}`)))
	require.False(t, matchesDocument(q, []byte(`{"a":[1]}`)))
}

// FuzzParse parses arbitrary text. If the text is valid, it evaluates and prints the query.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM c", "SELECT TOP 3 VALUE c.a.b FROM c WHERE c[\"x\"][0] >= -1.5e3 AND NOT c.y IN (1, 'a', null) ORDER BY c.a DESC, c.b",
		"select c.a as b, 'x' from root c where (c.n between @n and 2) or is_defined(c.z) offset 1 limit 2",
		"SELECT VALUE COUNT(1) FROM c WHERE c.s != @s", "FROM c WHERE c.a = 1", "SELECT VALUE MAX(c.a) FROM c", strings.Repeat("(", 500), "SELECT * FROM c WHERE " + strings.Repeat("NOT ", 300) + "true",
		"SELECT DISTINCT x.b, [1, {a: c.n ?? @list}] t FROM c JOIN x IN c.x JOIN (SELECT VALUE y FROM y IN c.x) z WHERE x % 2 << 1 | ~c.n = 3 ? true : c.s LIKE '%[^a-c]_' ESCAPE '!'",
		"SELECT c.a.b, SUM(c.n) / COUNT(1) s FROM c GROUP BY c.a.b, c.n -- end", "SELECT VALUE ARRAY(SELECT DISTINCT VALUE x || 's' FROM x IN c.x)[0]",
		"SELECT VALUE (SELECT VALUE x FROM x IN c.x) FROM c WHERE EXISTS(SELECT VALUE 1 WHERE c.n = -@n)",
		"SELECT c.a AS 'b c', NaN, -Infinity FROM (SELECT TOP 2 VALUE c FROM c ORDER BY c.n) c WHERE c.n < Infinity", "SELECT TRIM(c.s, 'x'), ARRAY(SELECT VALUE y FROM y IN c.x ORDER BY y DESC OFFSET 1 LIMIT 1) FROM c",
		"SELECT REGEXMATCH(c.s, c.s, 'imx'), DATETIMEADD('d', c.n, '2020-01-01'), REPLICATE(c.s, 9e9), OBJECTTOARRAY(@o), (-1)['a'] FROM c",
	} {
		f.Add(s, `{"id":"x","a":{"b":1},"n":1,"s":"x","x":[1]}`)
	}
	f.Fuzz(func(t *testing.T, text, doc string) {
		raw, err := rawjson.Compact(nil, []byte(doc))
		if err != nil || len(doc) > 100 {
			return
		}
		if q, err := ParseCondition(context.Background(), text); err == nil {
			_ = matchesDocument(q, raw)
			_ = q.Analyze()
		}
		q, err := Parse(context.Background(), text, params)
		var refused *Error
		if err != nil {
			require.True(t, errors.As(err, &refused))
			require.GreaterOrEqual(t, refused.Position, 0)
			require.LessOrEqual(t, refused.Position, len(text))
			return
		}
		again, err := Parse(context.Background(), q.Print(), params)
		if err != nil { // the printed text has more parentheses, so it may exceed maxDepth
			require.ErrorContains(t, err, "too deeply", q.Print())
			return
		}
		require.Equal(t, q.Print(), again.Print())
		got, failed := runQuery(q, [][]byte{raw, []byte(`{"id":"y"}`)})
		for _, result := range got {
			_, err := rawjson.Compact(nil, []byte(result))
			require.NoError(t, err, "a result is JSON: %s", result)
		}
		if !strings.Contains(strings.ToUpper(text), "CURRENT") && !strings.Contains(strings.ToUpper(text), "RAND") && failed == nil {
			same, err := runQuery(again, [][]byte{raw, []byte(`{"id":"y"}`)})
			require.NoError(t, err)
			require.Equal(t, got, same)
		}
		checkPredicates(t, q, raw)
	})
}

// checkPredicates checks the analysis of q against one document.
func checkPredicates(t testing.TB, q *Query, doc []byte) {
	a := q.Analyze()
	all := true
	for _, p := range a.Predicates {
		slots := make([][]byte, 1)
		rawjson.NewExtractor([]rawjson.Path{p.Path}).Extract(doc, slots)
		all = all && p.Holds(ParseValue(slots[0]))
	}
	if is := matchesDocument(q, doc); is && !all {
		require.Fail(t, "a predicate does not hold for a document that the condition holds for", "%s\n%s\n%+v", q.Print(), doc, a.Predicates)
	} else if a.Exact && all {
		require.True(t, is, "the predicates are not exact: %s\n%s", q.Print(), doc)
	}
}

func TestCompare_OrdersTypesAsCosmosDoes(t *testing.T) {
	order := []string{"", "null", "false", "true", "-1", "0", "1e3", `""`, `"a"`, `"b"`, "[1]", "{}"}
	for i, a := range order {
		for j, b := range order {
			c := Compare(ParseValue([]byte(a)), ParseValue([]byte(b)))
			require.Equal(t, boolToInt(i > j)-boolToInt(i < j), c, "%s, %s", a, b)
		}
	}
}

func TestParse_TakesTimeProportionalToTheText(t *testing.T) {
	sum := "1" + strings.Repeat(" + c.a", 20_000)
	for query, refused := range map[string]bool{
		"SELECT VALUE " + sum + " FROM c":                                             false,
		"SELECT VALUE COUNT(" + sum + ") FROM c":                                      false,
		"SELECT VALUE MAX(c.a) FROM c GROUP BY c.b, " + sum:                           true,
		"SELECT VALUE MAX(" + sum + ") FROM c GROUP BY c.b":                           false,
		"SELECT VALUE " + strings.Repeat(sum, 5):                                      true,
		strings.Repeat("(", 1000) + "1":                                               true,
		"SELECT VALUE " + strings.Repeat("-", 1) + strings.Repeat(" - ", 200) + "1":   true,
		"SELECT VALUE " + strings.Repeat("(SELECT VALUE ", 200) + "1":                 true,
		"SELECT VALUE c" + strings.Repeat("[0]", 10_000) + " FROM c":                  false,
		"SELECT VALUE 1 IN (1" + strings.Repeat(", 'abcdefghi'", 30_000) + ") FROM c": false,
	} {
		_, err := Parse(context.Background(), query, nil)
		require.Equal(t, refused, err != nil, "%.60s: %v", query, err)
	}
}
