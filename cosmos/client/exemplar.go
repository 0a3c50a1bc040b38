package client

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/domain"
)

// observeValue adds a value to a histogram, with the trace id of ctx as exemplar if the trace is
// sampled.
func observeValue(ctx context.Context, histogram prometheus.Observer, value float64) {
	c := domain.TraceContextOf(ctx)
	if observer, ok := histogram.(prometheus.ExemplarObserver); ok && c.Sampled {
		observer.ObserveWithExemplar(value, prometheus.Labels{"trace_id": c.TraceID.String()})
		return
	}
	histogram.Observe(value)
}
