package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// newFilledContainer creates a container. Each of its partitions p, q and r has documents with the ids "0" to "99",
// inserted alternately. Their property n descends.
func newFilledContainer(t testing.TB) (*Engine, *Container) {
	t.Helper()
	e, c := testContainer(t, defaultPolicy)
	for i := range 300 {
		pk := string("pqr"[i%3])
		doc, err := c.ParseDocument(fmt.Appendf(nil, `{"id":"%d","pk":%q,"n":%d}`, i/3, pk, 300-i), false)
		require.NoError(t, err)
		_, err = e.Write(t.Context(), c, doc.Partition, []Op{{Kind: Create, Doc: doc}}, Consistency{})
		require.NoError(t, err)
	}
	return e, c
}

// readAllPages reads all pages of a query. It returns the results, and how many documents the engine read.
func readAllPages(t require.TestingT, e *Engine, c *Container, text string, pk Partition, page int) (results []string, scanned int) {
	q, err := e.ParseQuery(context.Background(), text, nil)
	require.NoError(t, err)
	req := QueryRequest{Query: q, Text: text, Partition: pk, Scoped: pk != "", AllowCross: true, MaxItems: page}
	for {
		got, err := e.Query(context.Background(), c, req)
		require.NoError(t, err, text)
		var body struct{ Documents []json.RawMessage }
		require.NoError(t, json.Unmarshal(got.JSON, &body))
		for _, d := range body.Documents {
			results = append(results, string(d))
		}
		scanned += got.Scanned
		if req.Continuation = got.Continuation; req.Continuation == "" {
			return results, scanned
		}
	}
}

func TestQuery_ReadsOnlyWhatItsConditionNames(t *testing.T) {
	e, c := newFilledContainer(t)
	const p = Partition(`["p"]`)
	for _, tc := range []struct {
		query            string
		in               Partition
		scanned, results int
	}{
		{"SELECT * FROM c", p, 100, 100},
		{"SELECT * FROM c WHERE c.n > 290", p, 100, 4},
		{"SELECT * FROM c WHERE c.pk = 'q'", "", 100, 100},
		{"SELECT * FROM c WHERE c.pk = 'q' AND c.n > 290 ORDER BY c.n", "", 100, 3},
		{"SELECT * FROM c WHERE c.pk = 'nowhere'", "", 0, 0},
		{"SELECT * FROM c WHERE c.id = '7'", p, 1, 1},
		{"SELECT * FROM c WHERE c.id = '7' AND c.n < 0", p, 1, 0},
		{"SELECT * FROM c WHERE c.id = 7", p, 0, 0},
		{"SELECT * FROM c WHERE c.id = 'none'", p, 0, 0},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.id IN ('9', '8', 'none', '8')", p, 2, 1},
		{"SELECT * FROM c WHERE c.id = '7' OR c.id = '8' ORDER BY c.n", p, 2, 2},
		{"SELECT * FROM c WHERE c.id = '7'", "", 3, 3},
		{"SELECT * FROM c WHERE (c.id = '1' AND c.pk = 'p') OR (c.id = '2' AND c.pk = 'q')", "", 4, 2},
		{"SELECT * FROM c WHERE NOT (c.id = '7')", p, 100, 99},
		{"SELECT * FROM c WHERE c.id = '7' OR c.n = 1", p, 100, 1},
	} {
		results, scanned := readAllPages(t, e, c, tc.query, tc.in, -1)
		require.Len(t, results, tc.results, tc.query)
		require.Equal(t, tc.scanned, scanned, tc.query)
	}
}

// TestQuery_FindsWhatALoopFinds runs queries with random conditions, some of which name ids. It compares the pages with
// a loop over all documents.
func TestQuery_FindsWhatALoopFinds(t *testing.T) {
	e, c := newFilledContainer(t)
	everything, _ := readAllPages(t, e, c, "SELECT * FROM c", "", -1)
	require.Len(t, everything, 300)
	rapid.Check(t, func(r *rapid.T) {
		var condition func(depth int) string
		condition = func(depth int) string {
			number := func(limit int) int { return rapid.IntRange(0, limit).Draw(r, "number") }
			switch kind := rapid.IntRange(0, 8).Draw(r, "kind"); {
			case kind < 2:
				return fmt.Sprintf("c.id = '%d'", number(110))
			case kind == 2:
				return fmt.Sprintf("c.id IN ('%d', '%d', '%d')", number(110), number(110), number(9))
			case kind == 3:
				return fmt.Sprintf("c.n %s %d", rapid.SampledFrom([]string{"<", ">=", "=", "!="}).Draw(r, "operator"), number(310))
			case kind == 4:
				return fmt.Sprintf("c.pk = '%c'", "pqr"[number(2)])
			case depth == 3:
				return "STARTSWITH(c.id, '1')"
			case kind == 5:
				return "NOT (" + condition(depth+1) + ")"
			}
			join := rapid.SampledFrom([]string{" AND ", " OR "}).Draw(r, "join")
			return "(" + condition(depth+1) + join + condition(depth+1) + ")"
		}
		where := " FROM c WHERE " + condition(0)
		pk := rapid.SampledFrom([]Partition{"", `["p"]`, `["q"]`}).Draw(r, "partition")
		page := rapid.SampledFrom([]int{-1, 1, 7}).Draw(r, "page")

		plain, err := query.Parse(t.Context(), "SELECT *"+where, nil)
		require.NoError(r, err)
		slots := plain.NewSlots(t.Context(), query.DefaultLimits)
		want := slices.DeleteFunc(slices.Clone(everything), func(doc string) bool {
			plain.Extract([]byte(doc), slots)
			return pk != "" && !strings.Contains(doc, fmt.Sprintf(`"pk":%q`, strings.Trim(string(pk), `[]"`))) || !plain.Holds(slots)
		})
		got, _ := readAllPages(r, e, c, "SELECT *"+where, pk, page)
		require.Equal(r, strings.Join(want, "\n"), strings.Join(got, "\n"), where)
		if pk != "" {
			slices.Reverse(want) // n descends
			got, _ = readAllPages(r, e, c, "SELECT *"+where+" ORDER BY c.n", pk, page)
			require.Equal(r, strings.Join(want, "\n"), strings.Join(got, "\n"), where)
			got, _ = readAllPages(r, e, c, "SELECT VALUE COUNT(1)"+where, pk, page)
			require.Equal(r, []string{fmt.Sprint(len(want))}, got, where)
		}
	})
}
