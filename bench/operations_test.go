package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/baseline"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/cosmos"
)

// measureFigures runs a part of a scenario and returns its figures by layout
// and metric.
func measureFigures(t *testing.T, o Options, part func(r *scenarioRun) error) map[string]float64 {
	t.Helper()
	found := make(map[string]float64)
	r := &scenarioRun{Options: o, scenario: t.Name(), tell: func(f figure.Figure) {
		key := f.Layout + " " + f.Metric
		require.NotContains(t, found, key, "no figure is told twice")
		found[key] = f.Value
	}}
	require.NoError(t, part(r))
	return found
}

func TestWholePeek_DeliversTheDomainsContentInTime(t *testing.T) {
	a := openFastAccount(t)
	found := measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error { return measureWholePeek(t.Context(), r, a, &eventSource{seed: 1}) })
	require.InDelta(t, 50, found["hub whole peek, body"], 0, "MB, to the byte")
	require.GreaterOrEqual(t, found["hub whole peek, domain at 1s"], 1.0)
	require.Less(t, found["hub whole peek, domain at 1s"], 30.0)
}

func TestTrickle_CostsOfEachLayoutAreUnchanged(t *testing.T) {
	a, err := account.Open(t.Context(), account.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	for _, l := range append(baseline.Layouts(), hub) {
		require.NoError(t, l.Provision(t.Context(), a, perContainer))
		found := measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error {
			return trickleVariant{}.measureLayout(t.Context(), r, a, l, func(float64, string) {})
		})
		require.Len(t, found, 6)
		price := map[string]float64{"hub": 10, "original": 24.4, "single": 20}[l.Name]
		require.InEpsilon(t, price, found[l.Name+" save of one event, request units"], 0.02, l.Name)
	}
}

func TestGrowth_CostsDoNotDependOnStoredEvents(t *testing.T) {
	a := openFastAccount(t)
	g := &growingQueue{account: a, src: eventSource{seed: 1}, line: a.Line()}
	g.actor = g.src.newActor()
	var err error
	g.store, err = hub.Open(t.Context(), a, g.line)
	require.NoError(t, err)
	defer g.store.Close()
	for _, size := range []int{80_000, 160_000} { // more events than the drawers of one bundle hold
		require.NoError(t, g.fillTo(t.Context(), size))
		require.NoError(t, g.measureSize(t.Context(), size, 3))
	}
	found := measureFigures(t, Options{}, func(r *scenarioRun) error {
		for _, operation := range growthOperations {
			g.reportOperation(r, operation)
		}
		return nil
	})
	for _, operation := range growthOperations {
		require.InDelta(t, 1, found["hub "+operation+", request units, maximum to minimum"], 0.02, operation)
		require.InDelta(t, 1, found["hub "+operation+", requests, maximum to minimum"], 0, operation)
	}
}

func TestReopenedBundle_CostsTheSameToDequeueAgain(t *testing.T) {
	a, src := openFastAccount(t), eventSource{seed: 1}
	line := a.Line()
	s, stop, err := openHub(t.Context(), a, line, cosmos.Options{})
	require.NoError(t, err)
	defer stop()
	q, err := newReopenedQueue(t.Context(), a, &src, 3)
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, q.dequeueAgain(t.Context(), s, line, s))
	}
	require.Len(t, q.costs, 4)
	require.InEpsilon(t, q.costs[1].Units, q.costs[3].Units, 0.01)
}
