package hubmetrics

import "github.com/prometheus/client_golang/prometheus"

// A Source is the interface or tool that received the events.
type Source string

// The sources.
const (
	HTTP    Source = "http"
	Bus     Source = "bus"
	Console Source = "console" // sample traffic
)

var sources = []string{string(HTTP), string(Bus), string(Console)}

// Events counts the events from one source by result. It is safe for concurrent use.
type Events struct {
	accepted, duplicates, conflicts prometheus.Counter
}

// NewEvents returns the counters of a source. All sources share the same registered metrics.
func NewEvents(registerer prometheus.Registerer, source Source) *Events {
	counter := func(name, help string) prometheus.Counter {
		all := Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"source"}))
		Initialize(all, sources)
		return all.WithLabelValues(string(source))
	}
	return &Events{
		accepted:   counter("messagehub_events_accepted_total", "Events stored, by the way they came: http, bus, or console for sample traffic."),
		duplicates: counter("messagehub_events_duplicates_total", "Events that were stored before with the same content, redeliveries included, by the way they came."),
		conflicts:  counter("messagehub_events_conflicts_total", "Events refused because they were stored before with other content, by the way they came."),
	}
}

// AddAccepted counts events that the hub has stored.
func (e *Events) AddAccepted(n int) { e.accepted.Add(float64(n)) }

// AddKnown counts events that were stored before. Duplicates have the same content, and conflicts
// have different content.
func (e *Events) AddKnown(duplicates, conflicts int) {
	e.duplicates.Add(float64(duplicates))
	e.conflicts.Add(float64(conflicts))
}
