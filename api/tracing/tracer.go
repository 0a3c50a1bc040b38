// Package tracing joins the trace contexts of package domain, which travel with the calls of use
// cases and are stored, with the spans of OpenTelemetry, which the edges record.
//
// It promises that a context that comes in is passed on whether or not spans are recorded, that
// a header or property that is not valid is ignored, and that without a provider a request
// without a context costs nothing.
//
// Where spans go, and which of them are recorded, is decided by the program that gives the
// provider.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/domain"
)

// A Tracer starts the spans of an edge. Its zero value and a nil Tracer record nothing.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer for one package, which records with provider; nil:
// nothing is recorded.
func New(provider trace.TracerProvider, name string) *Tracer {
	if provider == nil {
		return nil
	}
	return &Tracer{provider.Tracer("github.com/messagehub/messagehub/" + name)}
}

// IsOn reports whether t records.
func (t *Tracer) IsOn() bool { return t != nil && t.tracer != nil }

// A Start describes a span that begins.
type Start struct {
	Name   string
	Kind   trace.SpanKind
	Parent domain.TraceContext   // of another process or an earlier time; zero: the span of ctx, or none
	Links  []domain.TraceContext // further causes
	Attrs  []attribute.KeyValue
	Extra  []trace.SpanStartOption
}

// Start starts a span, and returns a ctx with it, for child spans and for use
// cases. If t records nothing, that ctx has the parent.
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

// WithSpan returns ctx with a span that was started before.
func WithSpan(ctx context.Context, span trace.Span) context.Context {
	return domain.WithTraceContext(trace.ContextWithSpan(ctx, span), ContextOf(span))
}

// ContextOf returns the context of a span.
func ContextOf(span trace.Span) domain.TraceContext {
	c := span.SpanContext()
	if !c.IsValid() {
		return domain.TraceContext{}
	}
	return domain.TraceContext{
		TraceID: domain.TraceID(c.TraceID()), SpanID: domain.SpanID(c.SpanID()), Sampled: c.IsSampled(), State: c.TraceState().String(),
	}
}

// AddLinks adds other causes to a span, as far as they name a span.
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
		config.TraceState, _ = trace.ParseTraceState(c.State) // what it does not accept is left out
	}
	return trace.NewSpanContext(config)
}
