package query

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCollector_KeepsTheFirstResults(t *testing.T) {
	queries := []string{
		"SELECT DISTINCT VALUE i FROM c JOIN i IN c.l ORDER BY c.n DESC", "SELECT c.id, i FROM c JOIN i IN c.l ORDER BY c.n",
		"SELECT VALUE i FROM i IN c.l OFFSET 5 LIMIT 90", "SELECT c.n, SUM(i) AS s FROM c JOIN i IN c.l GROUP BY c.n", "SELECT DISTINCT c.n FROM c",
	}
	rapid.Check(t, func(r *rapid.T) {
		var docs [][]byte
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 60).Draw(r, "n") {
			docs = append(docs, fmt.Appendf(nil, `{"id":"%d","n":%d,"l":[%d,%d,%d]}`, i, n, i, n, i*n%7))
		}
		q := mustParse(t, rapid.SampledFrom(queries).Draw(r, "query"), nil)
		slots := q.NewSlots(context.Background(), DefaultLimits)
		holds := func(doc []byte) bool {
			q.Extract(doc, slots)
			return true
		}
		whole := collectResults(q, docs, NoLimit, slots, holds)
		want := rapid.IntRange(0, 20).Draw(r, "want")
		require.Equal(r, whole[:min(want, len(whole))], append(whole[:0:0], collectResults(q, docs, want, slots, holds)...))
	})
}
