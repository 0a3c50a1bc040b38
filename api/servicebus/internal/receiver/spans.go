package receiver

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/messagehub/messagehub/api/tracing"
)

// Microsoft's client records no spans, so the loop does. The span of a message lasts from its
// receipt until it is settled or abandoned. Its parent is the span in the message. The settlement
// is a child span. Handlers add further child spans, whose parent is [Message.Trace].

// startSpan starts the span of a received message.
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

// linkToCauses adds links to the causes of a decoded message to its span.
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
		return // that span may belong to another process
	}
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
