package cosmos

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
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
