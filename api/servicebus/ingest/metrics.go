package ingest

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/api/internal/hubmetrics"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
)

// ingestMetrics are the metrics of an Ingestion.
type ingestMetrics struct {
	loops *receiver.Metrics

	events              *hubmetrics.Events
	inversions, retries prometheus.Counter
	sessions, holding   prometheus.Gauge
}

// newIngestMetrics returns the metrics of an Ingestion with the given queues.
func newIngestMetrics(registerer prometheus.Registerer, queues []string) *ingestMetrics {
	make := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return make.NewCounter(prometheus.CounterOpts{Name: "messagehub_servicebus_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return make.NewGauge(prometheus.GaugeOpts{Name: "messagehub_servicebus_" + name, Help: help})
	}
	loops := receiver.NewMetrics(registerer)
	for _, queue := range queues {
		loops.Initialize(queue, reasons)
	}
	return &ingestMetrics{
		loops: loops,

		events:     hubmetrics.NewEvents(registerer, hubmetrics.Bus),
		inversions: counter("inversions_total", "Events stored after one of the same recipient that was sent later."),
		retries:    counter("save_retries_total", "Saves that failed and were tried again."),

		sessions: gauge("sessions_held", "Sessions that are being served."),
		holding:  gauge("sessions_holding", "Sessions and queues that hold their messages because the store is in trouble."),
	}
}
