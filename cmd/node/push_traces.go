package node

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

// startSpan starts the span of a call to a receiver, of a kind such as subscription. If the message is a CloudEvent
// with the extension traceparent, it is below that, and without a tracer it is that. The call carries it in
// its header; the body and the extension in it stay as they are.
func (c *caller) startSpan(ctx context.Context, kind string, m *domain.Message, attempts int) (context.Context, trace.Span) {
	parent, _ := domain.ParseTraceContext(m.Attributes["traceparent"], m.Attributes["tracestate"]) // or none
	start := tracing.Start{Name: "send " + kind, Kind: trace.SpanKindClient, Parent: parent}
	if c.tracer.IsOn() {
		start.Attrs = append(start.Attrs, tracing.System.String(tracing.Hub), tracing.OperationName.String("call"),
			tracing.OperationType.String(tracing.Send), tracing.Destination.String(kind), tracing.Resend.Int(attempts))
	}
	return c.tracer.Start(ctx, start)
}

func endSpan(span trace.Span, a *domain.Answer) {
	if !span.IsRecording() {
		return
	}
	if a.Status > 0 {
		span.SetAttributes(tracing.HTTPStatus.Int(a.Status))
	}
	if a.Status < 200 || a.Status > 299 {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// kindOf returns the kind of a receiver.
func kindOf(r *delivery.Receiver) string {
	switch r.Target.(type) {
	case *target:
		return "subscription"
	case *watcher:
		return "watch"
	default:
		return "consumer"
	}
}
