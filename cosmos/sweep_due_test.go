package cosmos

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

func TestSweep_OfAnyNodeIsInTheMetricsOfAll(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := began
	clock := func() time.Time { return now }
	rig := newRig(t, embedded.Options{})
	one := rig.node(Options{SweepEvery: time.Hour, Clock: clock}, true)
	other := rig.node(Options{SweepEvery: time.Hour, Clock: clock}, false)
	require.Zero(t, testutil.CollectAndCount(one.metrics.lastSweep), "no sweep is known")
	require.True(t, one.isDue(t.Context()))
	now = now.Add(time.Minute)
	require.False(t, other.isDue(t.Context()))
	for _, node := range []*Repository{one, other} {
		require.EqualValues(t, began.Unix(), testutil.ToFloat64(node.metrics.lastSweep))
	}
}

func TestSweep_ResultsAreCounted(t *testing.T) {
	inBubble(t, "a sweep fails, and the next one is complete", func(t *testing.T) {
		rig := newRig(t, embedded.Options{})
		node := rig.node(Options{}, false)
		rig.line.Break(func(int, *http.Request) faulty.Fault { return faulty.RequestLost })
		node.runSweep(t.Context())
		require.EqualValues(t, 1, testutil.ToFloat64(node.metrics.sweeps.WithLabelValues(incompleteSweep)))
		require.Zero(t, testutil.ToFloat64(node.metrics.sweeps.WithLabelValues(completeSweep)))
		rig.line.Break(nil)
		node.runSweep(t.Context())
		require.EqualValues(t, 1, testutil.ToFloat64(node.metrics.sweeps.WithLabelValues(completeSweep)))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		node.runSweep(ctx)
		require.EqualValues(t, 1, testutil.ToFloat64(node.metrics.sweeps.WithLabelValues(incompleteSweep)), "a node that stops has not failed")
	})
}
