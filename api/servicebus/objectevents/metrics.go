package objectevents

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/api/internal/hubmetrics"
	"github.com/messagehub/messagehub/api/internal/objectjson"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
)

// receiverMetrics are the metrics of a Receiver. The label reason has values from this package and
// from package objectjson.
type receiverMetrics struct {
	loops   *receiver.Metrics
	events  *prometheus.CounterVec // outcome
	refused *prometheus.CounterVec // reason
	retries prometheus.Counter
}

// newMetrics returns the metrics of a Receiver for queue.
func newMetrics(registerer prometheus.Registerer, queue string) *receiverMetrics {
	m := registerMetrics(registerer)
	m.loops.Initialize(queue, append(slices.Clip(reasons), objectjson.Reasons...))
	hubmetrics.Initialize(m.events, []string{"stored", "duplicate", "too-old", "refused", "ignored"})
	hubmetrics.Initialize(m.refused, append(slices.Clip(reasons), objectjson.Reasons...))
	return m
}

func registerMetrics(registerer prometheus.Registerer) *receiverMetrics {
	make := promauto.With(registerer)
	counters := func(name, help, label string) *prometheus.CounterVec {
		return make.NewCounterVec(prometheus.CounterOpts{Name: "messagehub_servicebus_" + name, Help: help}, []string{label})
	}
	return &receiverMetrics{
		loops: receiver.NewMetrics(registerer),
		events: counters("object_events_total",
			"Events of objects that came by the queue, by outcome: stored, duplicate (redeliveries included), too-old (not stored, for objects.retention), refused, or ignored.", "outcome"),
		refused: counters("object_events_refused_total", "Events of objects that can never be stored, by reason.", "reason"),
		retries: make.NewCounter(prometheus.CounterOpts{
			Name: "messagehub_servicebus_object_events_retries_total", Help: "Attempts to store events of objects that failed and were repeated.",
		}),
	}
}
