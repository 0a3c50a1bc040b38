package node

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

type answering func() domain.Answer

func (a answering) Call(context.Context, delivery.Call) domain.Answer { return a() }

func TestCallsAreCountedByTheClassOfTheirAnswer(t *testing.T) {
	registry := prometheus.NewRegistry()
	var answer domain.Answer
	m := newMeteredCaller(answering(func() domain.Answer {
		require.InDelta(t, 1, valueOf(t, registry, "messagehub_push_calls_under_way"), 0)
		return answer
	}), registry)
	for _, answer = range []domain.Answer{{Status: 204, Took: time.Second}, {Status: 299}, {Status: 503}, {Error: "no connection"}} {
		require.Equal(t, answer, m.Call(t.Context(), delivery.Call{}))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	m.Call(ended, delivery.Call{})
	require.Equal(t, map[string]uint64{"2xx": 2, "5xx": 1, "none": 1, "ended": 1}, callsBy(t, registry))
	require.InDelta(t, 0, valueOf(t, registry, "messagehub_push_calls_under_way"), 0)
}

func TestReceiversAreCountedByTheirWarnings(t *testing.T) {
	registry := prometheus.NewRegistry()
	countWarned(delivery.New(delivery.Ports{}, delivery.Options{}), registry)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "messagehub_push_receivers_warned", families[0].GetName())
	var warnings []string
	for _, m := range families[0].GetMetric() {
		require.Zero(t, m.GetGauge().GetValue())
		warnings = append(warnings, m.GetLabel()[0].GetValue())
	}
	require.ElementsMatch(t, []string{"failing", "last-attempts", "expiring"}, warnings)
}

// valueOf returns the value of a gauge.
func valueOf(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// callsBy returns the number of counted calls by class of response.
func callsBy(t *testing.T, registry *prometheus.Registry) map[string]uint64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	found := make(map[string]uint64)
	for _, family := range families {
		if family.GetName() != "messagehub_push_call_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			found[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
		}
	}
	return found
}
