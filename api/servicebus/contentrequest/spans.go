package contentrequest

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain/hub"
)

// startSpan starts the span of a request, which ends with the reply. Its parent is the span of the
// Peek. The message to the domain contains the trace context of the span.
func (r *Requests) startSpan(ctx context.Context, q *hub.ContentRequest, queue string) (context.Context, trace.Span) {
	start := tracing.Start{Name: "send " + queue, Kind: trace.SpanKindProducer, Parent: q.Trace}
	if r.tracer.IsOn() {
		start.Attrs = append(tracing.BusAttributes("request", tracing.Send, queue, q.Bundle.String()), tracing.Origin.String(q.Origin.String()))
	}
	return r.tracer.Start(ctx, start)
}

func endSpan(span trace.Span, reply hub.Reply, err error) {
	if !span.IsRecording() {
		return
	}
	if outcome := outcomeOf(reply, err); err != nil || reply.URI == "" {
		span.SetAttributes(tracing.ErrorType.String(outcome))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// startSettling starts the span of the settlement of a reply.
func (r *Requests) startSettling(ctx context.Context, queue, message, refusal string) (context.Context, trace.Span) {
	if !r.tracer.IsOn() {
		return ctx, trace.SpanFromContext(context.Background()) // this span records nothing
	}
	name := "complete"
	if refusal != "" {
		name = "dead_letter"
	}
	return r.tracer.Start(ctx, tracing.Start{
		Name: "settle " + queue, Kind: trace.SpanKindClient, Attrs: tracing.BusAttributes(name, tracing.Settle, queue, message),
	})
}
