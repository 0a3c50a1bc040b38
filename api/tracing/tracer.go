// Package tracing connects two kinds of trace contexts: those of package domain, which use cases
// pass on and store, and the spans of OpenTelemetry, which are recorded at the edges of the hub.
//
// The package passes on an incoming trace context even if no spans are recorded. It ignores an
// invalid header or property. Without a provider, a request that has no trace context costs
// nothing.
//
// The program that supplies the provider decides which spans are recorded and where they are sent.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/domain"
)

// A Tracer starts the spans of one edge of the hub, such as the HTTP API or the ingestion. A zero
// Tracer and a nil Tracer record nothing.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer for the package name, which records spans with provider. If provider is nil,
// the Tracer records nothing.
func New(provider trace.TracerProvider, name string) *Tracer {
	if provider == nil {
		return nil
	}
	return &Tracer{provider.Tracer("github.com/messagehub/messagehub/" + name)}
}

// IsOn reports whether t records spans.
func (t *Tracer) IsOn() bool { return t != nil && t.tracer != nil }

// A Start describes a span that is about to start.
type Start struct {
	Name   string
	Kind   trace.SpanKind
	Parent domain.TraceContext   // trace context from another process or an earlier time; if zero, the parent is the span of ctx, if there is one
	Links  []domain.TraceContext // further causes
	Attrs  []attribute.KeyValue
	Extra  []trace.SpanStartOption
}

// Start starts a span. It returns a context with the span, for child spans and for use cases. If t
// records nothing, the returned context has s.Parent.
func (t *Tracer) Start(ctx context.Context, s Start) (context.Context, trace.Span) {
	if !s.Parent.IsZero() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, spanContext(s.Parent))
	}
	if !t.IsOn() {
		return domain.WithTraceContext(ctx, s.Parent), trace.SpanFromContext(ctx)
	}
	options := append(s.Extra, trace.WithSpanKind(s.Kind), trace.WithAttributes(s.Attrs...))
	for _, cause := range s.Links {
		options = append(options, trace.WithLinks(linkTo(cause)))
	}
	ctx, span := t.tracer.Start(ctx, s.Name, options...)
	return WithSpan(ctx, span), span
}

// WithSpan returns ctx with a span that is already started.
func WithSpan(ctx context.Context, span trace.Span) context.Context {
	return domain.WithTraceContext(trace.ContextWithSpan(ctx, span), ContextOf(span))
}

// ContextOf returns the trace context of a span, or zero if the span is not valid.
func ContextOf(span trace.Span) domain.TraceContext {
	c := span.SpanContext()
	if !c.IsValid() {
		return domain.TraceContext{}
	}
	return domain.TraceContext{
		TraceID: domain.TraceID(c.TraceID()), SpanID: domain.SpanID(c.SpanID()), Sampled: c.IsSampled(), State: c.TraceState().String(),
	}
}

// AddLinks adds links to other causes to a span. It skips causes that are zero.
func AddLinks(span trace.Span, causes ...domain.TraceContext) {
	if !span.IsRecording() {
		return
	}
	for _, cause := range causes {
		if !cause.IsZero() {
			span.AddLink(linkTo(cause))
		}
	}
}

func linkTo(c domain.TraceContext) trace.Link { return trace.Link{SpanContext: spanContext(c)} }

func spanContext(c domain.TraceContext) trace.SpanContext {
	config := trace.SpanContextConfig{TraceID: trace.TraceID(c.TraceID), SpanID: trace.SpanID(c.SpanID), Remote: true}
	if c.Sampled {
		config.TraceFlags = trace.FlagsSampled
	}
	if c.State != "" {
		config.TraceState, _ = trace.ParseTraceState(c.State) // a tracestate that the library rejects is omitted
	}
	return trace.NewSpanContext(config)
}
