package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// busMetrics are the counts of a namespace, as Prometheus reads them.
func busMetrics(namespace *embedded.Namespace) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	for _, m := range []struct {
		name, help string
		kind       prometheus.ValueType
		value      func(embedded.Stats) int64
	}{
		{"connections", "AMQP connections that are open.", prometheus.GaugeValue, func(s embedded.Stats) int64 { return s.Connections }},
		{"frames_received_total", "AMQP frames received.", prometheus.CounterValue, func(s embedded.Stats) int64 { return s.FramesIn }},
		{"frames_sent_total", "AMQP frames sent.", prometheus.CounterValue, func(s embedded.Stats) int64 { return s.FramesOut }},
		{"transfers_received_total", "Frames received that carry messages.", prometheus.CounterValue, func(s embedded.Stats) int64 { return s.TransfersIn }},
		{"transfers_sent_total", "Frames sent that carry messages.", prometheus.CounterValue, func(s embedded.Stats) int64 { return s.TransfersOut }},
		{"received_bytes_total", "Bytes of messages received.", prometheus.CounterValue, func(s embedded.Stats) int64 { return s.BytesIn }},
		{"sent_bytes_total", "Bytes of messages sent.", prometheus.CounterValue, func(s embedded.Stats) int64 { return s.BytesOut }},
		{"entities", "Queues, topics and subscriptions.", prometheus.GaugeValue, func(s embedded.Stats) int64 { return int64(s.Entities) }},
		{"active_messages", "Messages that wait to be received.", prometheus.GaugeValue, func(s embedded.Stats) int64 { return s.Active }},
		{"scheduled_messages", "Messages that wait for their time.", prometheus.GaugeValue, func(s embedded.Stats) int64 { return s.Scheduled }},
		{"deferred_messages", "Messages that were put aside.", prometheus.GaugeValue, func(s embedded.Stats) int64 { return s.Deferred }},
		{"dead_letters", "Messages in dead-letter queues.", prometheus.GaugeValue, func(s embedded.Stats) int64 { return s.DeadLetters }},
	} {
		o := prometheus.Opts{Namespace: "servicebus", Name: m.name, Help: m.help}
		value := func() float64 { return float64(m.value(namespace.Stats())) }
		if m.kind == prometheus.CounterValue {
			registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts(o), value))
		} else {
			registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts(o), value))
		}
	}
	return registry
}
