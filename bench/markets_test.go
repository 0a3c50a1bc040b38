package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/market"
)

// newRecordedRun returns a run that records its figures by metric and unit.
func newRecordedRun(scenario string) (*scenarioRun, map[string]float64) {
	figures := make(map[string]float64)
	return &scenarioRun{
		Options: Options{Seed: 1, Quick: true}, scenario: scenario,
		tell: func(f figure.Figure) { figures[strings.TrimSpace(f.Metric+" "+f.Unit)] = f.Value },
	}, figures
}

// smallMarket returns a market that ends after two seconds.
func smallMarket(groups ...market.Group) market.Market {
	return market.Market{
		Groups: groups, Lasts: 2 * time.Second,
		Throughput: market.Throughput{Catalog: 10_000, Cabinet: 10_000, Bundles: 10_000},
	}
}

func TestManyActors_ReceiveAllTheirEvents(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, figures := newRecordedRun("many-actors")
	var curves []string
	r.Curve = func(c figure.Curve) { curves = append(curves, c.Name) }
	require.NoError(t, r.manyActors(t.Context(), smallMarket(market.Group{Size: 10, Events: 200, Batch: 5, Period: 200 * time.Millisecond})))
	require.Zero(t, figures["failed operations"])
	require.Zero(t, figures["events lost"])
	require.Zero(t, figures["events received twice"])
	require.Positive(t, figures["events per second 1/s"])
	require.Positive(t, figures["peek p99 ms"])
	require.GreaterOrEqual(t, figures["peek max ms"], figures["peek p50 ms"])
	require.Positive(t, figures["dequeue p99 ms"])
	require.Positive(t, figures["heap at the end MB"])
	require.Greater(t, figures["save to cleanup of an event RU"], 1.0)
	require.Less(t, figures["save to cleanup of an event RU"], 50.0)
	require.Equal(t, []string{"hub peek", "hub peek of nothing", "hub dequeue", "hub save"}, curves)
}

func TestHotActor_ReceivesAllItsEvents(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, figures := newRecordedRun("hot-actor")
	m := smallMarket(market.Group{Size: 5, Events: 50, Batch: 5, Period: 200 * time.Millisecond},
		market.Group{Kind: "hot ", Size: 1, Events: 200, Batch: 5, Period: 300 * time.Millisecond})
	require.NoError(t, r.hotActor(t.Context(), m))
	for _, kind := range []string{"", "hot "} {
		require.Zero(t, figures[kind+"events lost"])
		require.Zero(t, figures[kind+"events received twice"])
		require.Positive(t, figures[kind+"peek p50 ms"])
	}
	require.Positive(t, figures["events per second of the hot recipient 1/s"])
	require.Positive(t, figures["peek p99 with it times"])
}

func TestNoisyNeighbour_LosesNoEvents(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, figures := newRecordedRun("noisy-neighbour")
	m := smallMarket(market.Group{Size: 5, Events: 50, Batch: 5, Period: 200 * time.Millisecond},
		market.Group{Kind: "noisy ", Size: 1, Events: 50, Batch: 5, Period: 200 * time.Millisecond})
	require.NoError(t, r.noisyNeighbour(t.Context(), m, 1))
	for _, kind := range []string{"", "noisy "} {
		require.Zero(t, figures[kind+"events lost"])
		require.Zero(t, figures[kind+"events received twice"])
	}
	require.Positive(t, figures["requests of the noisy recipient refused"])
	for _, kind := range []string{"save", "peek", "dequeue"} {
		require.Positive(t, figures[kind+" p99 with it times"], kind)
	}
}

func TestHeapSize_GrowsFromTheGivenPart(t *testing.T) {
	h := new(heapSize)
	for i := range 100 {
		size := 100.0
		if i < 50 {
			size = float64(i)
		}
		if i >= 90 {
			size = 105
		}
		h.sizes = append(h.sizes, size)
	}
	require.InDelta(t, 5, h.growsFrom(0.5), 1e-9)
	require.InDelta(t, 5, h.growsFrom(0.75), 1e-9)
	require.Equal(t, 105.0, h.endSize())
	require.Equal(t, load.Outcome{}, h.addSample(t.Context()))
	require.Len(t, h.sizes, 101)
}
