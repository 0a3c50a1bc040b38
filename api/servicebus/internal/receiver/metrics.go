package receiver

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those of all loops of a process. The label queue takes its values from the
// configuration.
type Metrics struct {
	received, locksLost, panics, unsettled *prometheus.CounterVec // queue
	inHand                                 prometheus.Gauge
}

// NewMetrics registers the metrics, if there is a registerer.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	counters := func(name, help string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: "messagehub_servicebus_" + name, Help: help}, []string{"queue"})
	}
	return &Metrics{
		received:  counters("messages_received_total", "Messages received, redeliveries included."),
		locksLost: counters("locks_lost_total", "Locks of sessions, and of messages of a queue without sessions, that ended before the work was done."),
		panics:    counters("receiver_panics_total", "Messages on which the client panicked."),
		unsettled: counters("messages_unsettled_total", "Messages that were stored but could not be settled. They are delivered again."),
		inHand:    factory.NewGauge(prometheus.GaugeOpts{Name: "messagehub_servicebus_messages_in_hand", Help: "Messages received and not settled."}),
	}
}
