package ingest

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
)

// startStoring starts the span of storing messages. Its parent is the span of the first sampled
// message. It has links to the spans of the remaining messages.
func (s *eventStore) startStoring(ctx context.Context, ms []*busMessage, events int) (context.Context, trace.Span) {
	var parent domain.TraceContext
	for _, m := range ms {
		if parent.IsZero() || m.Trace.Sampled && !parent.Sampled {
			parent = m.Trace
		}
	}
	start := tracing.Start{Name: "process " + s.loop.Queue, Kind: trace.SpanKindConsumer, Parent: parent}
	if s.in.tracer.IsOn() {
		for _, m := range ms {
			if m.Trace != parent && !m.Trace.IsZero() && len(start.Links) < domain.MaxCauses {
				start.Links = append(start.Links, m.Trace)
			}
		}
		start.Attrs = append(tracing.BusAttributes("process", tracing.Process, s.loop.Queue, ""), tracing.BatchSize.Int(events))
	}
	return s.in.tracer.Start(ctx, start)
}

func endStoring(span trace.Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		span.SetAttributes(tracing.ErrorType.String(domain.KindOf(err).String()))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
