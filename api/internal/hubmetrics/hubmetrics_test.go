package hubmetrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/internal/hubmetrics"
)

func TestEvents_OfAllSourcesAreOneMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	http := hubmetrics.NewEvents(registry, hubmetrics.HTTP)
	bus := hubmetrics.NewEvents(registry, hubmetrics.Bus)
	http.AddAccepted(3)
	http.AddKnown(1, 0)
	bus.AddAccepted(2)
	bus.AddKnown(5, 1)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP messagehub_events_accepted_total Events stored, by the way they came: http, bus, or console for sample traffic.
# TYPE messagehub_events_accepted_total counter
messagehub_events_accepted_total{source="bus"} 2
messagehub_events_accepted_total{source="console"} 0
messagehub_events_accepted_total{source="http"} 3
# HELP messagehub_events_duplicates_total Events that were stored before with the same content, redeliveries included, by the way they came.
# TYPE messagehub_events_duplicates_total counter
messagehub_events_duplicates_total{source="bus"} 5
messagehub_events_duplicates_total{source="console"} 0
messagehub_events_duplicates_total{source="http"} 1
# HELP messagehub_events_conflicts_total Events refused because they were stored before with other content, by the way they came.
# TYPE messagehub_events_conflicts_total counter
messagehub_events_conflicts_total{source="bus"} 1
messagehub_events_conflicts_total{source="console"} 0
messagehub_events_conflicts_total{source="http"} 0
`)))
}

func TestEvents_HaveEachSourceFromTheStart(t *testing.T) {
	registry := prometheus.NewRegistry()
	hubmetrics.NewEvents(registry, hubmetrics.Bus)
	n, err := testutil.GatherAndCount(registry, "messagehub_events_accepted_total", "messagehub_events_duplicates_total", "messagehub_events_conflicts_total")
	require.NoError(t, err)
	require.Equal(t, 9, n)
}

func TestInitialize_GivesEachCombinationASeries(t *testing.T) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "n"}, []string{"a", "b"})
	hubmetrics.Initialize(counter, []string{"1", "2"}, []string{"x", "y", "z"})
	require.Equal(t, 6, testutil.CollectAndCount(counter))
}

func TestRegister_PanicsOnAnotherMetricOfTheName(t *testing.T) {
	registry := prometheus.NewRegistry()
	hubmetrics.Register(registry, prometheus.NewGauge(prometheus.GaugeOpts{Name: "n", Help: "one"}))
	require.Panics(t, func() {
		hubmetrics.Register(registry, prometheus.NewGauge(prometheus.GaugeOpts{Name: "n", Help: "two"}))
	})
}
