package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// describePredicate formats a predicate as an interval or a set.
func describePredicate(p Predicate) string {
	var path strings.Builder
	for _, step := range p.Path {
		if step.Array {
			fmt.Fprintf(&path, "[%d]", step.Index)
		} else {
			path.WriteString("/" + step.Name)
		}
	}
	if p.In != nil {
		var values []string
		for _, v := range p.In {
			values = append(values, string(v.Append(nil)))
		}
		return path.String() + " in {" + strings.Join(values, " ") + "}"
	}
	low, high := "(", ")"
	if p.Low != nil {
		low = map[bool]string{true: "[", false: "("}[p.Low.Inclusive] + string(p.Low.Value.Append(nil))
	}
	if p.High != nil {
		high = string(p.High.Value.Append(nil)) + map[bool]string{true: "]", false: ")"}[p.High.Inclusive]
	}
	return path.String() + " in " + low + " " + high
}

func TestAnalyze_FindsThePredicates(t *testing.T) {
	for _, tc := range []struct {
		where, want string
		exact       bool
	}{
		{"c.a = 1", "/a in {1}", true},
		{"1 = c.a AND c.b.c[0] = 'x'", "/a in {1}; /b/c[0] in {\"x\"}", true},
		{"c.a = @n", "/a in {1}", true},
		{"c.a > 1 AND c.a <= 5", "/a in (1 5]", true},
		{"c.a BETWEEN 1 AND 5", "/a in [1 5]", true},
		{"5 > c.a", "/a in ( 5)", true},
		{"c.a > 1 AND c.a < 'x'", "/a in (1 ); /a in ( \"x\")", true},
		{"c.a > 1 AND c.b < 2", "/a in (1 ); /b in ( 2)", true},
		{"c.a IN (1, 'x', null, 1.0)", "/a in {1 \"x\" null}", true},
		{"c.a IN (1, undefined)", "/a in {1}", true},
		{"c.a = undefined", "/a in {}", true},
		{"c.a > [1]", "/a in {}", true},
		{"IS_NULL(c.a)", "/a in {null}", true},
		{"c.a", "/a in {true}", true},
		{"NOT c.a", "/a in {false}", true},
		{"STARTSWITH(c.a, 'ab')", "/a in [\"ab\" \"ac\")", true},
		{"STARTSWITH(c.a, '')", "/a in [\"\" )", true},
		{"c.a = 1 OR c.a = 2 OR c.a IN (3, 1)", "/a in {1 2 3}", true},
		{"c.a = 1 OR c.b = 2", "", false},
		{"(c.id = 'x' AND c.pk = 1) OR (c.pk = 2 AND c.id = 'y')", "/id in {\"x\" \"y\"}; /pk in {1 2}", false},
		{"(c.id = 'x' OR c.id = 'y') AND c.b != 1", "/id in {\"x\" \"y\"}", false},
		{"c.a = 1 OR c.a > 2", "", false},
		{"c.a = 1 AND (c.b = 2 OR c.c = 3)", "/a in {1}", false},
		{"c.a = [1]", "", false},
		{"c.a != 1", "", false},
		{"c.a = c.b", "", false},
		{"NOT c.a = 1", "", false},
		{"STARTSWITH(c.a, 'ab', true)", "", false},
		{"LOWER(c.a) = 'x'", "", false},
		{"c.a + 1 = 2", "", false},
		{"c.a = 1 + 1", "/a in {2}", true},
		{"c.a = 1 AND CONTAINS(c.b, 'x')", "/a in {1}", false},
		{"true", "", true},
	} {
		a := mustParse(t, "SELECT VALUE COUNT(1) FROM c WHERE "+tc.where, params).Analyze()
		var got []string
		for _, p := range a.Predicates {
			got = append(got, describePredicate(p))
		}
		require.Equal(t, tc.want, strings.Join(got, "; "), tc.where)
		require.Equal(t, tc.exact, a.Exact, tc.where)
		require.Equal(t, !tc.exact, a.NeedsDocument, tc.where)
	}
}

func TestAnalyze_ReportsWhetherDocumentsAreNeeded(t *testing.T) {
	for query, needs := range map[string]bool{
		"SELECT VALUE COUNT(1) FROM c":                             false,
		"SELECT VALUE COUNT(1) FROM c WHERE c.a = 1":               false,
		"SELECT COUNT(1) AS n FROM c WHERE c.a > 1":                false,
		"SELECT VALUE COUNT(c.a) FROM c":                           true,
		"SELECT VALUE SUM(1) FROM c":                               true,
		"SELECT c.a, COUNT(1) FROM c GROUP BY c.a":                 true,
		"SELECT VALUE COUNT(1) FROM c JOIN t IN c.l":               true,
		"SELECT VALUE COUNT(1) FROM c WHERE c.a != 1":              true,
		"SELECT * FROM c WHERE c.a = 1":                            true,
		"SELECT VALUE c.a FROM c":                                  true,
		"SELECT VALUE COUNT(1) FROM c JOIN t IN c.l WHERE c.a = 1": true,
	} {
		require.Equal(t, needs, mustParse(t, query, nil).Analyze().NeedsDocument, query)
	}
	a := mustParse(t, "SELECT VALUE t FROM c JOIN t IN c.l WHERE c.a = 1 AND t.x = 2 ORDER BY c.b.d DESC", nil).Analyze()
	require.Len(t, a.Predicates, 1, "a condition on an element says nothing of the document")
	require.False(t, a.Exact)
	require.Equal(t, rawjson.Path{{Name: "b"}, {Name: "d"}}, a.Orders[0].Path)
	require.True(t, a.Orders[0].Descending)
}

func TestAnalyze_OfALongListIsFast(t *testing.T) {
	var parts []string
	for i := range 1000 {
		parts = append(parts, fmt.Sprintf("(c.id = 'i%d' AND c.pk = 'p%d')", i, i))
	}
	a := mustParse(t, "SELECT * FROM c WHERE "+strings.Join(parts, " OR "), nil).Analyze()
	require.Len(t, a.Predicates, 2)
	require.Len(t, a.Predicates[0].In, 1000)
}

func BenchmarkRun(b *testing.B) {
	doc := mustCompact(b, `{"id":"0123456789","pk":"p","kind":"tea","n":17,"pad":"`+strings.Repeat("x", 600)+`","tags":[{"n":"a"},{"n":"b"},{"n":"c"}]}`)
	for name, text := range map[string]string{
		"star": "SELECT * FROM c WHERE c.n > 5", "columns": "SELECT c.id, c.n FROM c WHERE c.kind = 'tea' AND c.n IN (1, 17)",
		"join": "SELECT VALUE t.n FROM c JOIN t IN c.tags", "exists": "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.n = 'c')",
	} {
		b.Run(name, func(b *testing.B) {
			q := mustParse(b, text, nil)
			slots := q.NewSlots(context.Background(), DefaultLimits)
			plan := q.Plan(func(rawjson.Path) bool { return true })
			given := 0
			one := func() {
				q.Extract(doc, slots)
				if !plan.Loads(slots) || !plan.Keeps(slots) {
					return
				}
				if q.Streams() {
					given += len(q.Project(nil, doc, slots))
					return
				}
				q.Results(doc, slots, func(result []byte) bool {
					given += len(result)
					return true
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
			require.Positive(b, given)
		})
	}
}
