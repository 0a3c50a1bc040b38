package otlp

import (
	"context"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A spanQueue limits the spans that wait for the receiver, and counts the spans
// that it drops. The SDK's processor would drop spans without reporting it.
// Because the processor has the same limit, it never drops any.
type spanQueue struct {
	sdktrace.SpanProcessor
	limit   int64
	waiting atomic.Int64 // number of spans that the processor has not passed to the exporter yet
	metrics *exporterMetrics
}

// OnEnd implements sdktrace.SpanProcessor.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return // the processor ignores the span, too
	}
	if q.waiting.Add(1) > q.limit {
		q.waiting.Add(-1)
		q.metrics.countDropped(queueFull, 1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// queueExporter is an exporter that subtracts spans from the queue after they were
// sent or dropped.
type queueExporter struct {
	sdktrace.SpanExporter
	queue *spanQueue
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *queueExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.queue.waiting.Add(-int64(len(spans)))
	return e.SpanExporter.ExportSpans(ctx, spans)
}
