package node

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/domain"
)

// A traceHandler is a slog.Handler that adds trace_id and span_id to each
// record whose context contains a span: the hub's span or, if the hub records
// none, the span that the request names.
type traceHandler struct{ slog.Handler }

// withTraceIDs returns a logger with a traceHandler.
func withTraceIDs(logger *slog.Logger) *slog.Logger {
	if _, has := logger.Handler().(traceHandler); has {
		return logger
	}
	return slog.New(traceHandler{logger.Handler()})
}

// Handle implements slog.Handler.
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String()))
	} else if c := domain.TraceContextOf(ctx); !c.IsZero() { // a background task has the span of the request that started it
		r.AddAttrs(slog.String("trace_id", c.TraceID.String()), slog.String("span_id", c.SpanID.String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
