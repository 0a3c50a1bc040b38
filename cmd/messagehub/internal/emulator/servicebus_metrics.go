package emulator

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// busMetrics returns a registry of the namespace's metrics.
func busMetrics(namespace *embedded.Namespace) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(busCollector{namespace})
	return registry
}

// A busCollector reads the namespace's statistics once per scrape.
type busCollector struct{ namespace *embedded.Namespace }

// Describe implements prometheus.Collector.
func (c busCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c busCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.namespace.Stats()
	send := func(kind prometheus.ValueType, name, help string, value int64) {
		desc := prometheus.NewDesc("servicebus_"+name, help, nil, nil)
		ch <- prometheus.MustNewConstMetric(desc, kind, float64(value))
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	send(gauge, "connections", "AMQP connections that are open.", s.Connections)
	send(counter, "refused_connections_total", "Connections closed at once, because the limit was reached.", s.Refused)
	send(counter, "replaced_connections_total", "Connections without a valid token that were closed for newer ones.", s.Replaced)
	send(gauge, "links", "AMQP links that are attached.", s.Links)
	send(gauge, "sessions", "AMQP sessions that have begun.", s.Sessions)
	send(gauge, "buffered_bytes", "Bytes that all connections buffer.", s.Buffered)
	send(gauge, "entities", "Queues, topics and subscriptions.", int64(s.Entities))
	send(gauge, "active_messages", "Messages that wait to be received.", s.Active)
	send(gauge, "scheduled_messages", "Messages that wait for their time.", s.Scheduled)
	send(gauge, "deferred_messages", "Messages that a receiver has deferred.", s.Deferred)
	send(gauge, "dead_letters", "Messages in dead-letter queues.", s.DeadLetters)
	send(counter, "frames_received_total", "AMQP frames received.", s.FramesIn)
	send(counter, "frames_sent_total", "AMQP frames sent.", s.FramesOut)
	send(counter, "transfers_received_total", "Frames received that carry messages.", s.TransfersIn)
	send(counter, "transfers_sent_total", "Frames sent that carry messages.", s.TransfersOut)
	send(counter, "received_bytes_total", "Bytes of messages received.", s.BytesIn)
	send(counter, "sent_bytes_total", "Bytes of messages sent.", s.BytesOut)
}
