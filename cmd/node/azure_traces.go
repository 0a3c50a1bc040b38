package node

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/tracing/azotel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/messagehub/messagehub/domain"
)

// azureTraces returns a provider that records the Cosmos and Blob Storage
// requests made for a traced request or message. It does not record requests of
// background work, such as a sweep. If provider is nil, it records nothing.
func azureTraces(provider trace.TracerProvider) tracing.Provider {
	if provider == nil {
		return tracing.Provider{}
	}
	return azotel.NewTracingProvider(childProvider{provider}, nil)
}

// A childProvider records only spans that have a parent.
type childProvider struct{ trace.TracerProvider }

// Tracer implements trace.TracerProvider.
func (p childProvider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return childTracer{p.TracerProvider.Tracer(name, options...)}
}

type childTracer struct{ trace.Tracer }

// Start implements trace.Tracer.
func (t childTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		outlasted := domain.TraceContextOf(ctx) // outlasted is the trace context of the request that started this background work
		if !outlasted.Sampled {
			return ctx, noop.Span{}
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(outlasted.TraceID), SpanID: trace.SpanID(outlasted.SpanID), TraceFlags: trace.FlagsSampled,
		}))
	}
	ctx, span := t.Tracer.Start(ctx, name, options...)
	quiet := quietSpan{span}
	return trace.ContextWithSpan(ctx, quiet), quiet
}

// A quietSpan records a failure without the text of the error. The Azure
// clients quote the document's address and the response, which contain ids.
type quietSpan struct{ trace.Span }

// SetStatus implements trace.Span.
func (s quietSpan) SetStatus(code codes.Code, _ string) { s.Span.SetStatus(code, "") }
