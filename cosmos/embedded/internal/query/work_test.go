package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// joinNumbers formats and joins the first n numbers.
func joinNumbers(n int, format, separator string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, separator)
}

// countSteps returns how many steps a query's condition takes for doc.
func countSteps(t *testing.T, condition, doc string) int {
	t.Helper()
	q := mustParse(t, "SELECT * FROM c WHERE "+condition, nil)
	slots := q.NewSlots(t.Context(), DefaultLimits)
	q.Extract(mustCompact(t, doc), slots)
	q.Holds(slots)
	require.NoError(t, slots.Failure())
	return slots.steps
}

func TestIn_CostsALookup(t *testing.T) {
	for _, format := range []string{"c.x IN (%s)", "c.x + 0 IN (%s)", "NOT c.x IN (%s)"} {
		short, long := fmt.Sprintf(format, joinNumbers(10, "%d", ",")), fmt.Sprintf(format, joinNumbers(50_000, "%d", ","))
		require.Equal(t, countSteps(t, short, `{"x":-1}`), countSteps(t, long, `{"x":-1}`), format)
	}
	require.Equal(t, countSteps(t, joinNumbers(10, "c.x=%d", " OR "), `{"x":-1}`), countSteps(t, joinNumbers(30_000, "c.x=%d", " OR "), `{"x":-1}`))
}

func TestIn_LookupFindsWhatASearchFinds(t *testing.T) {
	values := []string{"0", "-0", "1", "1e0", "2.5", "'a'", `'\u0061'`, "''", "true", "false", "null", "undefined", "[]", "[1]", "[1.0]", "{}", "{a:1,b:2}", "{b:2,a:1}", "'[1]'", "'null'"}
	rapid.Check(t, func(r *rapid.T) {
		items := rapid.SliceOfN(rapid.SampledFrom(values), minLookup, 2*minLookup).Draw(r, "items")
		wanted := rapid.SampledFrom(append(values, "c.missing", "c.x")).Draw(r, "wanted")
		doc := mustCompact(t, `{"x":1}`)
		get := func(text string) []string {
			results, err := runQuery(mustParse(t, text, nil), [][]byte{doc})
			require.NoError(r, err)
			return results
		}
		alone := make([]string, len(items)) // make each comparison a separate operand, which prevents a lookup table
		for i, item := range items {
			alone[i] = "(" + wanted + " = " + item + " ?? " + "undefined)"
		}
		for _, form := range []string{"SELECT VALUE %s FROM c", "SELECT VALUE NOT (%s) FROM c"} {
			want := get(fmt.Sprintf(form, strings.Join(alone, " OR ")))
			require.Equal(r, want, get(fmt.Sprintf(form, wanted+" IN ("+strings.Join(items, ", ")+")")))
			require.Equal(r, want, get(fmt.Sprintf(form, wanted+" = "+strings.Join(items, " OR "+wanted+" = "))))
		}
	})
}

func TestGroupBy_FindsItsKeyAtTheStartOfAChain(t *testing.T) {
	docs := [][]byte{mustCompact(t, `{"a":1,"b":2,"o":{"x":[5]}}`)}
	for text, want := range map[string]string{
		"SELECT VALUE c.a + c.b + 1 FROM c GROUP BY c.a + c.b":         "4",
		"SELECT VALUE c.a + c.b + COUNT(1) FROM c GROUP BY c.a + c.b":  "4",
		"SELECT VALUE c.o.x[0] FROM c GROUP BY c.o.x":                  "5",
		"SELECT VALUE c.a ?? 2 ?? 3 FROM c GROUP BY c.a ?? 2":          "1",
		"SELECT VALUE c.a = 1 AND c.b = 2 FROM c GROUP BY c.a, c.b":    "true",
		"SELECT VALUE c.a - c.b * 2 - 1 FROM c GROUP BY c.a - c.b * 2": "-4",
	} {
		results, err := runQuery(mustParse(t, text, nil), docs)
		require.NoError(t, err, text)
		require.Equal(t, []string{want}, results, text)
	}
}

func TestEvaluation_EndsWhenItIsTooMuchForOneDocument(t *testing.T) {
	long := strings.Repeat("a", 1<<18)
	doc := mustCompact(t, fmt.Sprintf(`{"s":%q,"l":[%s],"o":{%s},"deep":%s%s%s}`, long, joinNumbers(50_000, "%d", ","), joinNumbers(20_000, `"a%d":1`, ","),
		strings.Repeat("[", 100), joinNumbers(50_000, "%d", ","), strings.Repeat("]", 100)))
	for name, text := range map[string]string{
		"LIKE":                 "c.s LIKE '%" + long[:100_000] + "b'",
		"a set of LIKE":        "c.s LIKE '%[" + strings.Repeat("b", 100_000) + "]'",
		"a regular expression": "RegexMatch(c.s, '(a?){200}b')",
		"words":                "FullTextContainsAll(c.s, " + joinNumbers(40_000, "'b%d'", ",") + ")",
		"texts":                "LENGTH(CONCAT(" + joinNumbers(300, "REPLACE(c.s, 'a', 'aa%d')", ",") + ")) > 0",
		"joined texts":         "LENGTH(" + strings.TrimSuffix(strings.Repeat("c.s || ", 300), "|| ") + ") > 0",
		"arrays":               "ARRAY_LENGTH([" + strings.TrimSuffix(strings.Repeat("c.s,", 2000), ",") + "]) = 0",
		"objects":              "IS_DEFINED({" + joinNumbers(2000, "a%d: c.s", ",") + "}.b)",
		"parts of arrays":      "ARRAY_CONTAINS(c.l, c.o, true)",
		"nested arrays":        "c.deep = ARRAY(SELECT VALUE x FROM x IN c.deep)",
		"elements":             joinNumbers(2000, "ARRAY_CONTAINS(c.l, -1%d)", " OR "),
		"steps into a row":     "EXISTS(SELECT VALUE 1 FROM x IN c.l JOIN (SELECT VALUE c.o) o WHERE o.b = x)",
		"long elements":        "EXISTS(SELECT VALUE 1 FROM x IN c.l JOIN y IN c.deep WHERE x < 0)",
	} {
		q := mustParse(t, "SELECT * FROM c WHERE "+text, nil)
		slots := q.NewSlots(t.Context(), DefaultLimits)
		q.Extract(doc, slots)
		require.False(t, q.Holds(slots), name)
		require.ErrorContains(t, slots.Failure(), "too long", name)
	}
	for name, text := range map[string]string{
		"constant texts": "SELECT VALUE LENGTH(CONCAT(" + joinNumbers(300, "REPLACE(@s, 'a', 'aa%d')", ",") + "))",
		"a pattern":      "SELECT VALUE RegexMatch('a', '((a?){100}){100}')",
		"a JOIN":         "SELECT VALUE 1 FROM c " + joinNumbers(11, "JOIN a%d IN c.l", " "),
		"a path":         "SELECT VALUE c" + strings.Repeat(".a", 10_001) + " FROM c",
	} {
		_, err := Parse(context.Background(), text, map[string]Value{"@s": {Kind: String, Text: []byte(long)}})
		require.Error(t, err, name)
	}
}

func TestPlan_JoinsHalfRangesOfOnePath(t *testing.T) {
	q := mustParse(t, "SELECT * FROM c WHERE c.a > 1 AND c.b < 'x' AND c.a <= 9 AND c.a > 2 AND c.b >= 3", nil)
	predicates := q.Analyze().Predicates
	require.Len(t, predicates, 4)
	require.Equal(t, 1.0, predicates[0].Low.Value.Num)
	require.Equal(t, 9.0, predicates[0].High.Value.Num)
	require.Nil(t, predicates[1].Low)
	require.Nil(t, predicates[2].High)
	require.Nil(t, predicates[3].High)
}
