package node

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

// startSpan starts the span of a call to a receiver. If the message is a
// CloudEvent with the extension traceparent, that extension names the parent,
// and the span links to the span that accepted the message. Otherwise the
// parent is the span that accepted the message. Without a tracer, startSpan
// returns the parent. The call sends the span in its traceparent header; the
// body, including the extension, does not change.
func (c *httpCaller) startSpan(ctx context.Context, call *delivery.Call) (context.Context, trace.Span) {
	attributes, kind := call.Entry.Attributes, kindOf(call.Receiver)
	parent, err := domain.ParseTraceContext(attributes["traceparent"], attributes["tracestate"])
	start := tracing.Start{Name: "send " + kind, Kind: trace.SpanKindClient, Parent: parent}
	switch accepted := call.Entry.Accepted; {
	case err != nil: // the message has no valid traceparent
		start.Parent = accepted
	case !accepted.IsZero():
		start.Links = append(start.Links, accepted)
	}
	if c.tracer.IsOn() {
		start.Attrs = append(start.Attrs, tracing.System.String(tracing.Hub), tracing.OperationName.String("call"),
			tracing.OperationType.String(tracing.Send), tracing.Destination.String(kind), tracing.Resend.Int(call.Attempt))
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

// kindOf returns the kind of a receiver, for the span's name.
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
