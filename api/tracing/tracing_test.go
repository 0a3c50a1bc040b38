package tracing_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
)

const (
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	other  = "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203332-01"
	zeros  = "00-00000000000000000000000000000000-0000000000000000-01"
)

func parse(t *testing.T, parent, state string) domain.TraceContext {
	t.Helper()
	c, err := domain.ParseTraceContext(parent, state)
	require.NoError(t, err)
	return c
}

func TestHeader_CarriesAContext(t *testing.T) {
	c := parse(t, parent, "a=b,c=d")
	h := http.Header{}
	tracing.AddToHeader(h, c)
	assert.Equal(t, c, tracing.FromHeader(h))
	h["Tracestate"] = []string{"a=b", "c=d"}
	assert.Equal(t, c, tracing.FromHeader(h), "in two lines")

	tracing.AddToHeader(http.Header(nil), domain.TraceContext{})
}

func TestHeader_IsIgnoredUnlessValid(t *testing.T) {
	for name, parents := range map[string][]string{
		"missing": nil, "empty": {""}, "zeros": {zeros}, "doubled": {parent, parent}, "a megabyte": {strings.Repeat("0", 1<<20)},
	} {
		assert.Zero(t, tracing.FromHeader(http.Header{"Traceparent": parents, "Tracestate": {"a=b"}}), name)
	}
	c := tracing.FromHeader(http.Header{"Traceparent": {parent}, "Tracestate": {"a=" + strings.Repeat("b", 600)}})
	assert.Equal(t, parse(t, parent, ""), c)
}

func TestProperties_CarryAContext(t *testing.T) {
	c := parse(t, parent, "a=b")
	p := map[string]any{"Operation": "x"}
	tracing.AddToProperties(p, c)
	assert.Equal(t, c, tracing.FromProperties(p))
	assert.Equal(t, parent, p["Diagnostic-Id"])
	assert.Equal(t, parse(t, parent, ""), tracing.FromProperties(map[string]any{"Diagnostic-Id": parent}))
	assert.Equal(t, parse(t, parent, ""), tracing.FromProperties(map[string]any{"Diagnostic-Id": other, "traceparent": parent}))
}

func TestProperties_AreIgnoredUnlessValid(t *testing.T) {
	for name, p := range map[string]map[string]any{
		"missing": nil, "zeros": {"traceparent": zeros}, "a number": {"traceparent": 7}, "a megabyte": {"traceparent": strings.Repeat("0", 1<<20)},
		"the older form": {"Diagnostic-Id": "|7dba9dcb-4f56f5c9efbd2e07.1."}, "bytes": {"traceparent": []byte(parent)},
	} {
		assert.Zero(t, tracing.FromProperties(p), name)
	}
}

func TestTracer_WithoutAProviderPassesOnTheParent(t *testing.T) {
	tracer := tracing.New(nil, "api")
	c := parse(t, parent, "a=b")
	ctx, span := tracer.Start(t.Context(), tracing.Start{Parent: c})
	defer span.End()
	assert.Equal(t, c, domain.TraceContextOf(ctx))
	assert.Equal(t, c.TraceID.String(), trace.SpanContextFromContext(ctx).TraceID().String())
	assert.False(t, span.IsRecording())

	ctx, span = tracer.Start(t.Context(), tracing.Start{})
	defer span.End()
	assert.Equal(t, t.Context(), ctx, "nothing is added for a request that carries no context")
}

func TestTracer_RecordsParentAndLinks(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), "api")
	from, cause := parse(t, parent, "a=b"), parse(t, other, "")
	ctx, span := tracer.Start(t.Context(), tracing.Start{Name: "peek", Kind: trace.SpanKindServer, Parent: from, Links: []domain.TraceContext{cause}})
	tracing.AddLinks(span, cause, domain.TraceContext{})
	span.End()
	require.Len(t, spans.Ended(), 1)
	ended := spans.Ended()[0]
	assert.Equal(t, from.SpanID.String(), ended.Parent().SpanID().String())
	assert.Equal(t, from.TraceID, domain.TraceContextOf(ctx).TraceID)
	assert.Equal(t, "a=b", domain.TraceContextOf(ctx).State)
	assert.Equal(t, domain.SpanID(ended.SpanContext().SpanID()), domain.TraceContextOf(ctx).SpanID)
	require.Len(t, ended.Links(), 2)
	assert.Equal(t, cause.SpanID.String(), ended.Links()[1].SpanContext.SpanID().String())
}
