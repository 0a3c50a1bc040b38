package receiver

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api/internal/hubmetrics"
)

// Metrics are the metrics of all loops of a process. The values of the label queue come from the
// configuration, and the values of the label reason from the packages that reject messages.
type Metrics struct {
	received, locksLost, panics, unsettled *prometheus.CounterVec // queue
	inHand                                 prometheus.Gauge
	connected                              *prometheus.GaugeVec   // queue
	deadLettered                           *prometheus.CounterVec // reason, queue
}

// NewMetrics registers the metrics with registerer, which may be nil. All loops with the same
// registerer share the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return hubmetrics.Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "messagehub_servicebus_" + name, Help: help}, append(labels, "queue")))
	}
	return &Metrics{
		received:  counters("messages_received_total", "Messages received, redeliveries included."),
		locksLost: counters("locks_lost_total", "Locks of sessions, and of messages of a queue without sessions, that ended before the work was done."),
		panics:    counters("receiver_panics_total", "Messages on which the client panicked."),
		unsettled: counters("messages_unsettled_total", "Messages that were stored but could not be settled. They are delivered again."),
		inHand: hubmetrics.Register(registerer, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "messagehub_servicebus_messages_in_hand", Help: "Messages received and not settled.",
		})),
		connected: hubmetrics.Register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "messagehub_servicebus_connected",
			Help: "Whether the last attempt to receive from the queue succeeded: 1 or 0. There is no value before the first attempt has ended.",
		}, []string{"queue"})),
		deadLettered: counters("messages_dead_lettered_total", "Messages that cannot be stored, by reason. Each leaves a gap.", "reason"),
	}
}

// Initialize creates the series of a queue with the value 0. reasons are the possible reasons of
// its dead letters. The metric for reachability of the queue gets no value yet.
func (m *Metrics) Initialize(queue string, reasons []string) {
	for _, counter := range []*prometheus.CounterVec{m.received, m.locksLost, m.panics, m.unsettled} {
		hubmetrics.Initialize(counter, []string{queue})
	}
	hubmetrics.Initialize(m.deadLettered, reasons, []string{queue})
}
