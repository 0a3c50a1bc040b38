package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// Indexes answer AND, OR and NOT of predicates. A document that they find must be loaded only if the rest of the
// condition needs it.
func TestPlan_LoadsTheDocumentsThatIndexesFind(t *testing.T) {
	docs := []string{
		`{"id":"1","a":1,"b":"x"}`, `{"id":"2","a":1,"b":"y"}`, `{"id":"3","a":2,"b":"x"}`, `{"id":"4","b":"x"}`, `{"id":"5","a":"text"}`,
	}
	// The path b has no index.
	isIndexed := func(p rawjson.Path) bool { return p[0].Name != "b" }
	for _, tc := range []struct {
		condition     string
		loaded, given string
		predicates    int
		isIndexOnly   bool
	}{
		{"c.a = 1", "12", "12", 1, true},
		{"c.b = 'x'", "12345", "134", 0, false},
		{"c.a = 1 AND c.b = 'x'", "12", "1", 1, false},
		{"c.id = '3' OR c.a = 1", "123", "123", 2, true},
		{"c.id = '3' OR c.b = 'y'", "12345", "23", 0, false},
		{"c.id = '3' OR c.a = 1 AND c.b = 'y'", "123", "23", 2, false},
		{"c.id = '3' OR c.id > '3' AND (c.a = 'text' OR c.b = 'x')", "345", "345", 1, false},
		{"NOT IS_DEFINED(c.a)", "4", "4", 1, true},
		{"c.id > '2' AND NOT IS_DEFINED(c.a)", "4", "4", 2, true},
		{"NOT IS_DEFINED(c.b)", "12345", "5", 0, false},
		{"NOT (c.a = 1)", "35", "35", 1, true},
		{"NOT (c.a = 1 AND c.b = 'x')", "12345", "235", 0, false},
		{"NOT (c.a = 1 OR c.id = '5')", "3", "3", 2, true},
		{"c.a != 1", "12345", "35", 0, false},
	} {
		q := mustParse(t, "SELECT * FROM c WHERE "+tc.condition, nil)
		plan := q.Plan(isIndexed)
		slots := q.NewSlots(context.Background(), DefaultLimits)
		loaded, given := "", ""
		for i, doc := range docs {
			if q.Extract(mustCompact(t, doc), slots); plan.Loads(slots) {
				loaded += fmt.Sprint(i + 1)
				if plan.Keeps(slots) {
					given += fmt.Sprint(i + 1)
				}
			}
		}
		require.Equal(t, tc.loaded, loaded, tc.condition)
		require.Equal(t, tc.given, given, tc.condition)
		require.Equal(t, tc.predicates, plan.Predicates, tc.condition)
		require.Equal(t, tc.isIndexOnly, plan.IndexOnly(), tc.condition)
	}
}

func TestPlan_AcceptsALongListOfAlternatives(t *testing.T) {
	var parts []string
	for i := range 1000 {
		parts = append(parts, fmt.Sprintf("(c.id = 'i%d' AND c.b = 'p%d')", i, i))
	}
	plan := mustParse(t, "SELECT * FROM c WHERE "+strings.Join(parts, " OR "), nil).Plan(func(p rawjson.Path) bool { return p[0].Name != "b" })
	require.Equal(t, 1, plan.Predicates)
	require.Len(t, plan.Confines[0].In, 1000)
}
