package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

func TestCheckMetrics_ShowTheLastCompleteCheck(t *testing.T) {
	m := newCheckMetrics(prometheus.NewRegistry())
	report, fault := hub.CheckReport{Found: 5, Repaired: 2}, error(nil)
	check := m.observeChecker(func(context.Context, hub.CheckOptions) (hub.CheckReport, error) { return report, fault },
		func() time.Time { return time.Unix(1_800_000_000, 0) })
	actor, err := domain.ParseActorID("5790001330552")
	require.NoError(t, err)

	for _, opts := range []hub.CheckOptions{{Actor: actor}, {Resume: "position"}} {
		_, err = check(t.Context(), opts)
		require.NoError(t, err)
		require.Zero(t, testutil.CollectAndCount(m.ended), "a part of the queues says nothing about all")
	}
	_, err = check(t.Context(), hub.CheckOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1_800_000_000, testutil.ToFloat64(m.ended))
	require.EqualValues(t, 3, testutil.ToFloat64(m.findings))

	report, fault = hub.CheckReport{}, errors.New("the store is away")
	_, err = check(t.Context(), hub.CheckOptions{})
	require.Error(t, err)
	require.EqualValues(t, 3, testutil.ToFloat64(m.findings), "a check that failed says nothing")
}
