package api

import (
	"context"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
)

// Each request has a span, whose parent is the span in the header traceparent. otelhttp is not
// used: it would end the span when the handler returns, when a parked Peek has no response yet. It
// would also wrap the request and the response again, and add the metrics of OpenTelemetry to the
// program.

// startSpan starts the span of a request. If the request resumes a parked request, it continues the
// parked request's span.
func (s *Server) startSpan(ctx context.Context, r *http.Request, rec *requestRecord) context.Context {
	if rec.poll != nil && rec.poll.span != nil {
		rec.span = rec.poll.span
		return tracing.WithSpan(ctx, rec.span)
	}
	parent := tracing.FromHeader(r.Header)
	if !s.tracer.IsOn() && parent.IsZero() || slices.Contains(polledRoutes, r.URL.Path) {
		return ctx
	}
	ctx, rec.span = s.tracer.Start(ctx, tracing.Start{
		Name: "HTTP", Kind: trace.SpanKindServer, Parent: parent,
		Extra: []trace.SpanStartOption{trace.WithTimestamp(rec.start)},
	})
	return ctx
}

// describe adds attributes to the span of the request, if the span is recorded.
func (rec *requestRecord) describe(attrs ...attribute.KeyValue) {
	if rec.span != nil && rec.span.IsRecording() {
		rec.span.SetAttributes(attrs...)
	}
}

// describeOperation adds attributes that OpenTelemetry's semantic conventions define for messaging.
func (rec *requestRecord) describeOperation(name, kind string, actor domain.ActorID) {
	if rec.span != nil && rec.span.IsRecording() {
		rec.span.SetAttributes(tracing.System.String(tracing.Hub), tracing.OperationName.String(name), tracing.OperationType.String(kind))
		if actor != (domain.ActorID{}) {
			rec.span.SetAttributes(tracing.Destination.String(actor.String()), tracing.Actor.String(actor.String()))
		}
	}
}

// linkTo adds links to the span of the request, which lead to causes.
func (rec *requestRecord) linkTo(causes ...domain.TraceContext) {
	if rec.span != nil {
		tracing.AddLinks(rec.span, causes...)
	}
}

// endSpan ends the span of a request. The name of the span contains the pattern of the route and
// not the path, which may contain ids.
func (rec *requestRecord) endSpan(method, route string, o responseFacts) {
	if rec.span == nil || !rec.span.IsRecording() {
		return
	}
	rec.span.SetName(method + " " + route)
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, tracing.HTTPMethod.String(method), tracing.HTTPRoute.String(route))
	if o.code > 0 && o.status != aborted {
		attrs = append(attrs, tracing.HTTPStatus.Int(o.code))
	}
	if rec.problem != "" {
		attrs = append(attrs, tracing.ErrorType.String(string(rec.problem)))
	}
	rec.span.SetAttributes(attrs...)
	if o.code >= 500 || o.status == aborted {
		rec.span.SetStatus(codes.Error, o.status) // without a description, because the text of an error may quote the client
	}
	rec.span.End()
}

// exemplar returns the id of the request's trace if the trace is sampled, and "" otherwise.
func (rec *requestRecord) exemplar() string {
	if rec.span == nil || !rec.span.SpanContext().IsSampled() {
		return ""
	}
	return rec.span.SpanContext().TraceID().String()
}
