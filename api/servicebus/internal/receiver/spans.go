package receiver

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/messagehub/messagehub/api/tracing"
)

// The client records no spans. So the loop starts a span for each message, from
// its receipt until it is settled or abandoned, whose parent is the span in the
// message, and a child span for its settlement. Spans of a handler are children
// of that of the message, by [Message.Trace].

// startSpan starts the span of a message that was received.
func (l *Loop[T]) startSpan(ctx context.Context, m *Message[T]) {
	parent := tracing.FromProperties(m.ApplicationProperties)
	m.Trace = parent
	m.span = noop.Span{}
	if !l.Tracer.IsOn() {
		return
	}
	_, m.span = l.Tracer.Start(ctx, tracing.Start{
		Name: "receive " + l.Queue, Kind: trace.SpanKindConsumer, Parent: parent,
		Attrs: tracing.BusAttributes("receive", tracing.Receive, l.Queue, m.MessageID),
	})
	m.Trace = tracing.ContextOf(m.span)
}

// linkToCauses adds links to the span of a decoded message.
func (m *Message[T]) linkToCauses() {
	if content, ok := any(m.Content).(Caused); ok {
		tracing.AddLinks(m.span, content.TraceCauses()...)
	}
}

// startSettling starts the span of the settlement of a message.
func (l *Loop[T]) startSettling(ctx context.Context, m *Message[T]) (context.Context, trace.Span) {
	name := "complete"
	if m.Rejection != nil {
		name = "dead_letter"
	}
	start := tracing.Start{Name: "settle " + l.Queue, Kind: trace.SpanKindClient, Parent: m.Trace}
	if l.Tracer.IsOn() {
		start.Attrs = tracing.BusAttributes(name, tracing.Settle, l.Queue, m.MessageID)
		if m.Rejection != nil {
			start.Attrs = append(start.Attrs, tracing.ErrorType.String(m.Rejection.Reason))
		}
	}
	return l.Tracer.Start(ctx, start)
}

func endSettling(span trace.Span, err error) {
	if !span.IsRecording() {
		return // it may be the span of another process
	}
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
