package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/cmd/node/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A receiver is an OTLP receiver that decodes requests, and answers as a test
// specifies.
type receiver struct {
	t      *testing.T
	answer func(n int, w http.ResponseWriter) // answers the n-th request, counted from 0; nil to answer 200

	mu       sync.Mutex
	requests []*http.Request
	spans    []*tracepb.Span
	resource map[string]string
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		var err error
		body, err = gzip.NewReader(body)
		assert.NoError(r.t, err)
	}
	text, err := io.ReadAll(body)
	assert.NoError(r.t, err)
	var data tracepb.TracesData
	assert.NoError(r.t, proto.Unmarshal(text, &data))
	r.mu.Lock()
	n := len(r.requests)
	r.requests = append(r.requests, req)
	r.mu.Unlock()
	w := httptest.NewRecorder()
	if r.answer != nil {
		r.answer(n, w)
	}
	if w.Code/100 != 2 {
		return w.Result(), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resource = make(map[string]string)
	for _, resource := range data.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			r.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	return w.Result(), nil
}

type fixture struct {
	*testing.T
	receiver *receiver
	log      bytes.Buffer
	registry *prometheus.Registry
	slept    []time.Duration
	traces   *otlp.Traces
}

const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"

func open(t *testing.T, answer func(int, http.ResponseWriter), environ ...string) *fixture {
	t.Helper()
	f := &fixture{T: t, receiver: &receiver{t: t, answer: answer}, registry: prometheus.NewRegistry()}
	var err error
	f.traces, err = otlp.Open(t.Context(), otlp.Options{
		Environ: append([]string{endpoint}, environ...), Version: "1.2.3", Transport: f.receiver, Registerer: f.registry,
		Logger: slog.New(slog.NewTextHandler(&f.log, nil)), Random: func() float64 { return 0.5 },
		Sleep: func(ctx context.Context, d time.Duration) {
			f.slept = append(f.slept, d)
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		},
	})
	require.NoError(t, err)
	require.NotNil(t, f.traces)
	return f
}

// pass advances the synctest bubble's clock, and waits until all due work has
// ended.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// endSpans records and ends n spans.
func (f *fixture) endSpans(n int) {
	tracer := f.traces.Provider().Tracer("test")
	for range n {
		_, span := tracer.Start(f.Context(), "span", trace.WithSpanKind(trace.SpanKindServer))
		span.End()
	}
}

func (f *fixture) close() { f.traces.Close(f.Context(), time.Second) }

// dropped returns the number of spans dropped for this reason.
func (f *fixture) dropped(reason string) float64 {
	return f.metric("messagehub_trace_spans_dropped_total", reason)
}

func (f *fixture) metric(name, label string) float64 {
	families, err := f.registry.Gather()
	require.NoError(f, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue()
			}
		}
	}
	f.Fatalf("no metric %s %s", name, label)
	return 0
}

func TestOpen_RecordsNothingByDefault(t *testing.T) {
	for _, environ := range [][]string{
		nil,
		{"OTEL_TRACES_EXPORTER=none", endpoint},
		{"OTEL_SDK_DISABLED=true", endpoint},
		{"OTEL_SDK_DISABLED=TRUE", "OTEL_TRACES_EXPORTER=otlp"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT="},
		{"OTEL_SERVICE_NAME=hub"},
		{"OTEL_TRACES_SAMPLER=always_on"},
	} {
		traces, err := otlp.Open(t.Context(), otlp.Options{Environ: environ})
		require.NoError(t, err)
		assert.Nil(t, traces, "%v", environ)
		assert.Nil(t, traces.Provider())
		traces.Close(t.Context(), time.Second)
	}
}

func TestOpen_NamesTheVariableThatIsWrong(t *testing.T) {
	const secret = "Zm9vYmFy"
	for _, v := range []string{
		"OTEL_TRACES_EXPORTER=jaeger", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=localhost:4318", "OTEL_EXPORTER_OTLP_ENDPOINT=ftp://x", "OTEL_EXPORTER_OTLP_ENDPOINT=http://user:" + secret + "@%zz",
		"OTEL_EXPORTER_OTLP_HEADERS=" + secret, "OTEL_EXPORTER_OTLP_HEADERS=a=b%0Dc" + secret, "OTEL_EXPORTER_OTLP_HEADERS=a b=" + secret, "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=%zz" + secret,
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s", "OTEL_EXPORTER_OTLP_TIMEOUT=0", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd", "OTEL_EXPORTER_OTLP_CERTIFICATE=/does/not/exist",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY=/does/not/exist", "OTEL_TRACES_SAMPLER=sometimes", "OTEL_TRACES_SAMPLER_ARG=2", "OTEL_TRACES_SAMPLER_ARG=NaN",
		"OTEL_BSP_MAX_QUEUE_SIZE=0", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=many", "OTEL_BSP_SCHEDULE_DELAY=-1", "OTEL_BSP_EXPORT_TIMEOUT=x", "OTEL_RESOURCE_ATTRIBUTES=nothing",
	} {
		_, err := otlp.Open(t.Context(), otlp.Options{Environ: []string{"OTEL_TRACES_EXPORTER=otlp", v}})
		name, _, _ := strings.Cut(v, "=")
		if assert.Error(t, err, v) {
			assert.Contains(t, err.Error(), name)
			assert.NotContains(t, err.Error(), secret)
		}
	}
}

func TestSpans_AreSentAsTheEnvironmentSays(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		url     string
	}{
		"of every signal": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://receiver:4318/base", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20abc, x-scope = y"}, "http://receiver:4318/base/v1/traces"},
		"of traces":       {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://receiver:4318/own", "OTEL_EXPORTER_OTLP_HEADERS=authorization=no", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=authorization=Bearer%20abc,x-scope=y"}, "http://receiver:4318/own"},
		"compressed":      {[]string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20abc,x-scope=y"}, "http://localhost:4318/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, nil, append(c.environ, "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test,service.name=other,note=a%20b", "OTEL_SERVICE_NAME=hub-a")...)
			f.endSpans(3)
			f.close()
			require.Len(t, f.receiver.requests, 1)
			r := f.receiver.requests[0]
			assert.Equal(t, c.url, r.URL.String())
			assert.Equal(t, "application/x-protobuf", r.Header.Get("Content-Type"))
			assert.Equal(t, "Bearer abc", r.Header.Get("Authorization"))
			assert.Equal(t, "y", r.Header.Get("X-Scope"))
			assert.Len(t, f.receiver.spans, 3)
			assert.Equal(t, "hub-a", f.receiver.resource["service.name"])
			assert.Equal(t, "1.2.3", f.receiver.resource["service.version"])
			assert.Equal(t, "a b", f.receiver.resource["note"])
			assert.InDelta(t, 3, f.metric("messagehub_trace_spans_sent_total", ""), 0)
			assert.NotContains(t, f.log.String(), "abc")
		})
	}
}

func TestSpans_AreSampledAsTheEnvironmentSpecifies(t *testing.T) {
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, Remote: true})
	for sampler, want := range map[string][2]bool{ // whether a span without a parent, and one with a sampled parent, is recorded
		"": {true, true}, "always_off": {false, false}, "parentbased_always_off": {false, true}, "parentbased_traceidratio": {false, true},
		"traceidratio": {false, false}, "parentbased_always_on": {true, true}, "always_on": {true, true},
	} {
		f := open(t, nil, "OTEL_TRACES_SAMPLER="+sampler, "OTEL_TRACES_SAMPLER_ARG=0")
		tracer := f.traces.Provider().Tracer("test")
		_, alone := tracer.Start(t.Context(), "alone")
		_, child := tracer.Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "child")
		assert.Equal(t, want, [2]bool{alone.IsRecording(), child.IsRecording()}, sampler)
		f.close()
	}
}

func TestBusyReceiver_IsRetriedAfterItsRetryAfter(t *testing.T) {
	for _, status := range []int{429, 502, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, func(n int, w http.ResponseWriter) {
				if n == 0 {
					w.Header().Set("Retry-After", "7")
				}
				if n < 3 {
					w.WriteHeader(status)
				}
			})
			f.endSpans(2)
			pass(20 * time.Second)
			assert.Equal(t, []time.Duration{7 * time.Second, 2 * time.Second, 4 * time.Second}, f.slept)
			assert.Len(t, f.receiver.spans, 2)
			assert.Zero(t, f.dropped("unavailable"))
			f.close()
		})
	}
}

func TestReceiver_ThatStaysBusyIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, func(_ int, w http.ResponseWriter) {
			w.Header().Set("Retry-After", time.Now().Add(8*time.Second).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		}, "OTEL_BSP_EXPORT_TIMEOUT=20000")
		f.endSpans(2)
		pass(time.Minute)
		assert.Len(t, f.receiver.requests, 3)
		assert.InDelta(t, 2, f.dropped("unavailable"), 0)
		assert.Contains(t, f.log.String(), "answered 503 Service Unavailable")
		f.close()
	})
}

func TestReceiver_ThatRefusesSpansGetsNoRetry(t *testing.T) {
	for _, status := range []int{400, 401, 413, 500, 307} {
		f := open(t, func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", "http://elsewhere/")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "your header was hush")
		}, "OTEL_EXPORTER_OTLP_HEADERS=authorization=hush")
		f.endSpans(2)
		f.close()
		assert.Len(t, f.receiver.requests, 1, status)
		assert.InDelta(t, 2, f.dropped("rejected"), 0, status)
		assert.NotContains(t, f.log.String(), "hush")
	}
}

func TestPartialSuccess_CountsTheRejectedSpans(t *testing.T) {
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 2)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), "too old")
	answer := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
	f := open(t, func(_ int, w http.ResponseWriter) { _, _ = w.Write(answer) })
	f.endSpans(5)
	f.close()
	assert.InDelta(t, 3, f.metric("messagehub_trace_spans_sent_total", ""), 0)
	assert.InDelta(t, 2, f.dropped("rejected"), 0)

	f = open(t, func(_ int, w http.ResponseWriter) { _, _ = w.Write([]byte{0x0a, 0xff, 0xff, 0xff}) })
	f.endSpans(5)
	f.close()
	assert.InDelta(t, 5, f.metric("messagehub_trace_spans_sent_total", ""), 0, "an answer that cannot be decoded")
}

func TestReceiver_ThatIsSlowDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := open(t, func(int, http.ResponseWriter) { <-release }, "OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4", "OTEL_BSP_SCHEDULE_DELAY=10")
		begin := time.Now()
		for range 50 {
			f.endSpans(1)
			synctest.Wait()
		}
		assert.Equal(t, begin, time.Now(), "no span waits")
		assert.InDelta(t, 40, f.dropped("queue_full"), 0)
		close(release)
		f.close()
		assert.Len(t, f.receiver.spans, 10)
	})
}

func TestClose_ReturnsInTimeAlthoughTheReceiverIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) })
		f.endSpans(2000)
		begin := time.Now()
		f.traces.Close(t.Context(), 3*time.Second)
		assert.LessOrEqual(t, time.Since(begin), 3*time.Second)
		assert.InDelta(t, 2000, f.dropped("unavailable"), 0)
		assert.Less(t, strings.Count(f.log.String(), "spans were dropped"), 5)
	})
}

func TestReceiverOutage_IsLoggedOnceAndAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, nil, "OTEL_BSP_EXPORT_TIMEOUT=100", "OTEL_BSP_SCHEDULE_DELAY=10")
		away := true
		f.receiver.answer = func(_ int, w http.ResponseWriter) {
			if away {
				w.WriteHeader(http.StatusBadGateway)
			}
		}
		for range 3 {
			f.endSpans(1)
			pass(time.Second)
		}
		away = false
		f.endSpans(1)
		pass(time.Second)
		assert.Equal(t, 2, strings.Count(f.log.String(), "spans were dropped"))
		assert.Contains(t, f.log.String(), "takes spans again")
		f.close()
	})
}

func TestMetrics_HaveEveryReasonFromTheStart(t *testing.T) {
	f := open(t, nil)
	defer f.close()
	n, err := testutil.GatherAndCount(f.registry, "messagehub_trace_spans_dropped_total")
	require.NoError(t, err)
	assert.Equal(t, 3, n)
}

func TestTransport_ReachesARealReceiver(t *testing.T) {
	got := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- len(text)
	}))
	defer server.Close()
	traces, err := otlp.Open(t.Context(), otlp.Options{Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL}, Registerer: prometheus.NewRegistry()})
	require.NoError(t, err)
	_, span := traces.Provider().Tracer("test").Start(t.Context(), "span")
	span.End()
	traces.Close(t.Context(), 10*time.Second)
	assert.Positive(t, <-got)
}
