package otlp

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reasons for dropping spans.
const (
	queueFull   = "queue_full"  // spans end faster than the receiver accepts them
	rejected    = "rejected"    // the receiver rejected the spans
	unavailable = "unavailable" // the receiver was unreachable, or did not accept the spans in time
)

type exporterMetrics struct {
	sent    prometheus.Counter
	dropped *prometheus.CounterVec // reason
}

func newMetrics(registerer prometheus.Registerer) *exporterMetrics {
	make := promauto.With(registerer)
	m := &exporterMetrics{
		sent: make.NewCounter(prometheus.CounterOpts{
			Name: "messagehub_trace_spans_sent_total",
			Help: "Spans that the OTLP receiver has accepted.",
		}),
		dropped: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_trace_spans_dropped_total",
			Help: "Spans that were recorded and not accepted by the OTLP receiver, by reason: queue_full, rejected, or unavailable.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{queueFull, rejected, unavailable} {
		m.dropped.WithLabelValues(reason)
	}
	return m
}

func (m *exporterMetrics) countDropped(reason string, n int) {
	m.dropped.WithLabelValues(reason).Add(float64(n))
}
