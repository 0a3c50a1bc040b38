package query

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// noon is the current time of every query in these tests.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 123_456_700, time.UTC)

func mustParse(t testing.TB, text string, params map[string]Value) *Query {
	t.Helper()
	q, err := Parse(context.Background(), text, params, WithClock(func() time.Time { return noon }))
	require.NoError(t, err, text)
	return q
}

// mustCompact returns JSON as the engine stores it.
func mustCompact(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := rawjson.Compact(nil, []byte(text))
	require.NoError(t, err, text)
	return raw
}

// runQuery evaluates q over docs as the engine does. It streams the results if possible, otherwise it collects them.
func runQuery(q *Query, docs [][]byte) ([]string, error) {
	if q.Source() != nil {
		source, err := runQuery(q.Source(), docs)
		if err != nil {
			return nil, err
		}
		var rows [][]byte
		for _, row := range source {
			rows = append(rows, []byte(row))
		}
		found, slots := q.Derive(rows, NoLimit, q.NewSlots(context.Background(), DefaultLimits))
		results := []string{}
		for _, result := range found {
			results = append(results, string(result))
		}
		return results, slots.Failure()
	}
	slots := q.NewSlots(context.Background(), DefaultLimits)
	plan := q.Plan(func(path rawjson.Path) bool { return len(path) == 1 })
	holds := func(doc []byte) bool {
		q.Extract(doc, slots)
		return plan.Loads(slots) && plan.Keeps(slots) && q.HasResult(slots)
	}
	if q.Constant() {
		docs = [][]byte{nil}
	}
	results := []string{}
	if q.Local() && q.Limit() == NoLimit {
		for _, doc := range docs {
			switch {
			case !holds(doc):
			case q.Streams():
				results = append(results, string(q.Project(nil, doc, slots)))
			default:
				q.Results(doc, slots, func(result []byte) bool {
					results = append(results, string(result))
					return true
				})
			}
		}
		return results, slots.Failure()
	}
	for _, result := range collectResults(q, docs, NoLimit, slots, holds) {
		results = append(results, string(result))
	}
	return results, slots.Failure()
}

func collectResults(q *Query, docs [][]byte, want int, slots *Slots, holds func(doc []byte) bool) [][]byte {
	c := q.Collect(want)
	for _, doc := range docs {
		if holds(doc) && !c.Add(doc, slots) {
			break
		}
	}
	return c.Results(slots)
}

// matchesDocument reports whether doc meets the condition of q.
func matchesDocument(q *Query, doc []byte) bool {
	slots := q.NewSlots(context.Background(), DefaultLimits)
	q.Extract(doc, slots)
	return q.Holds(slots)
}
