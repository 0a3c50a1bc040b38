package otlp

import (
	"context"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A spanQueue limits the spans that wait for the receiver, and counts those for which there is no
// room: the processor of the SDK drops them without saying so. Its own limit is as high, and is
// never reached.
type spanQueue struct {
	sdktrace.SpanProcessor
	limit   int64
	waiting atomic.Int64 // in the processor, and not passed to the exporter yet
	metrics *exporterMetrics
}

// OnEnd implements sdktrace.SpanProcessor.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return // nor does the processor take it
	}
	if q.waiting.Add(1) > q.limit {
		q.waiting.Add(-1)
		q.metrics.countDropped(queueFull, 1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// A leaving exporter takes spans out of the queue once they were sent or dropped.
type leaving struct {
	sdktrace.SpanExporter
	queue *spanQueue
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *leaving) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.queue.waiting.Add(-int64(len(spans)))
	return e.SpanExporter.ExportSpans(ctx, spans)
}
