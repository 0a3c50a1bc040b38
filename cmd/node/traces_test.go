package node_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/otlp"
)

// A spanReceiver is an OTLP receiver that stores the spans sent by nodes.
type spanReceiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
}

func newSpanReceiver(t testing.TB) *spanReceiver {
	r := &spanReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		assert.NoError(t, err)
		var data tracepb.TracesData
		assert.NoError(t, proto.Unmarshal(text, &data))
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, resource := range data.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// A tracedNode is a node that sends its spans to a receiver when it stops.
type tracedNode struct {
	*node.Node
	stop func() // stops the node, which then sends its spans
	log  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func startTraced(t testing.TB, r *spanReceiver, cfg config.Config, environ ...string) *tracedNode {
	t.Helper()
	out := &lockedBuffer{}
	logger := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	traces, err := otlp.Open(t.Context(), otlp.Options{Environ: append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL}, environ...), Registerer: prometheus.NewRegistry(), Logger: logger})
	require.NoError(t, err)
	n, stop := start(t, cfg, node.Options{Logger: logger, Traces: traces.Provider()})
	return &tracedNode{Node: n, log: out, stop: func() {
		require.NoError(t, stop())
		traces.Close(t.Context(), 10*time.Second)
	}}
}

const (
	domainTrace = "0af7651916cd43dd8448eb211c80319c"
	actorTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	aSpan       = "00f067aa0ba902b7"
)

func parentOf(trace string) string { return "00-" + trace + "-" + aSpan + "-01" }

// spanNamed returns the span with this name. It fails the test unless there is
// exactly one.
func (r *spanReceiver) spanNamed(t testing.TB, name string) *tracepb.Span {
	t.Helper()
	all := r.all(name)
	require.Len(t, all, 1, "%s among %v", name, r.names())
	return all[0]
}

func (r *spanReceiver) all(name string) []*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*tracepb.Span
	for _, s := range r.spans {
		if s.GetName() == name {
			found = append(found, s)
		}
	}
	return found
}

func (r *spanReceiver) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, s := range r.spans {
		names = append(names, s.GetName())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// childNames returns the names of the direct children of s.
func (r *spanReceiver) childNames(s *tracepb.Span) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, child := range r.spans {
		if bytes.Equal(child.GetParentSpanId(), s.GetSpanId()) && bytes.Equal(child.GetTraceId(), s.GetTraceId()) {
			names = append(names, child.GetName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return strings.Trim(strings.SplitN(a.GetValue().String(), ":", 2)[1], `"`)
		}
	}
	return ""
}

// requireLinks checks that a span has exactly these links, in this order.
func requireLinks(t testing.TB, s *tracepb.Span, to ...*tracepb.Span) {
	t.Helper()
	var want, got []string
	for _, other := range to {
		want = append(want, hex.EncodeToString(other.GetTraceId())+hex.EncodeToString(other.GetSpanId()))
	}
	for _, l := range s.GetLinks() {
		got = append(got, hex.EncodeToString(l.GetTraceId())+hex.EncodeToString(l.GetSpanId()))
	}
	require.Equal(t, want, got, "links of %s", s.GetName())
}

// requireChild checks that a span belongs to trace and is a child of parent.
func requireChild(t testing.TB, s *tracepb.Span, trace, parent string) {
	t.Helper()
	require.Equal(t, trace, hex.EncodeToString(s.GetTraceId()), s.GetName())
	require.Equal(t, parent, hex.EncodeToString(s.GetParentSpanId()), s.GetName())
}

func idOf(s *tracepb.Span) string { return hex.EncodeToString(s.GetSpanId()) }

// fetchEvent sends, peeks and dequeues an event, on three nodes and with
// different traceparent headers, and returns the body of the bundle. The event
// has no payload, because only one node could read it.
func fetchEvent(t *testing.T, saves, peeks, dequeues *node.Node) string {
	t.Helper()
	status, body := send(t, saves, http.MethodPost, "/v1/data-available", "application/json", strings.Replace(event, `,"payload":{"n":1}`, "", 1), "Traceparent", parentOf(domainTrace), "Tracestate", "a=b")
	require.Equal(t, 202, status, body)
	resp, bundle := get(t, peeks.URL()+"/v1/peek?bundleId=2f732863-0bb4-4bd2-a8e3-2089d92b473f", "Traceparent", parentOf(actorTrace))
	require.Equal(t, 200, resp.StatusCode, bundle)
	status, body = send(t, dequeues, http.MethodDelete, "/v1/dequeue/"+resp.Header.Get("MessageId"), "application/json", "", "X-Actor-Id", "a", "Traceparent", parentOf(actorTrace))
	require.Equal(t, 200, status, body)
	return bundle
}

const (
	saveRoute    = "POST /v1/data-available"
	peekRoute    = "GET /v1/peek"
	dequeueRoute = "DELETE /v1/dequeue/{bundleId}"
)

func requireTree(t *testing.T, r *spanReceiver) {
	t.Helper()
	save, peek, dequeue := r.spanNamed(t, saveRoute), r.spanNamed(t, peekRoute), r.spanNamed(t, dequeueRoute)
	requireChild(t, save, domainTrace, aSpan)
	requireChild(t, peek, actorTrace, aSpan)
	requireChild(t, dequeue, actorTrace, aSpan)
	requireLinks(t, save)
	requireLinks(t, peek, save)
	requireLinks(t, dequeue, peek)
	require.Contains(t, r.childNames(peek), "execute_batch bundles")
	require.Contains(t, r.childNames(dequeue), "execute_batch bundles")
	require.NotEmpty(t, r.childNames(save))
	require.NotEmpty(t, attribute(r.all("execute_batch bundles")[0], "db.cosmosdb.request_charge"))
	require.Equal(t, "settle", attribute(dequeue, "messaging.operation.type"))
	require.Equal(t, "200", attribute(peek, "http.response.status_code"))
	require.Equal(t, "1", attribute(peek, "messaging.batch.message_count"))
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, peek.GetKind())
	for _, s := range r.spans {
		require.NotContains(t, s.String(), "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", "the id of an event")
		require.NotContains(t, s.String(), adminToken)
		require.NotContains(t, s.GetName(), "2f732863", "the id of a bundle")
	}
}

func TestTrace_OverHTTPReachesFromTheDomainToTheDequeue(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, settings(""))
	withTraces := fetchEvent(t, n.Node, n.Node, n.Node)
	n.stop()
	requireTree(t, r)

	off, stop := start(t, settings(""), node.Options{})
	require.Equal(t, withTraces, fetchEvent(t, off, off, off), "the body is the same")
	require.NoError(t, stop())

	for _, want := range []struct{ route, trace string }{{"/v1/data-available", domainTrace}, {"/v1/peek", actorTrace}} {
		line := logLine(t, n.log.String(), want.route)
		require.Equal(t, want.trace, line["trace_id"])
		require.Len(t, line["span_id"], 16)
	}
	require.Equal(t, idOf(r.spanNamed(t, peekRoute)), logLine(t, n.log.String(), "/v1/peek")["span_id"])
}

// logLine returns the log line of a request.
func logLine(t *testing.T, log, route string) map[string]any {
	t.Helper()
	for line := range strings.Lines(log) {
		var attrs map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &attrs))
		if attrs["msg"] == "request" && attrs["route"] == route {
			return attrs
		}
	}
	t.Fatalf("no line about %s", route)
	return nil
}

func TestTrace_ReachesFromOneNodeToAnother(t *testing.T) {
	r := newSpanReceiver(t)
	a := newAccount(t)
	first, second := startTraced(t, r, a.settings()), startTraced(t, r, a.settings())
	fetchEvent(t, first.Node, second.Node, first.Node)
	first.stop()
	second.stop()
	requireTree(t, r)
}

func TestTrace_OverTheBusReachesTheContentAndTheNotice(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, withListeners(""))
	charges := newCharges(t, n.Node)
	ctx, end := context.WithCancel(t.Context())
	requests, notices := make(chan *domainclient.Request, 1), make(chan *domainclient.Notice, 1)
	var domains sync.WaitGroup
	domains.Go(func() {
		_ = charges.Serve(ctx, func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
			requests <- r
			return answerWithEventIDs(ctx, r)
		})
	})
	domains.Go(func() {
		_ = charges.Notices(ctx, func(_ context.Context, n *domainclient.Notice) error { notices <- n; return nil })
	})
	const actor = "5790001330552"
	events := chargesFor(actor, 1)
	events[0].TraceParent, events[0].TraceState = parentOf(domainTrace), "a=b"
	_, err := charges.Send(t.Context(), events)
	require.NoError(t, err)
	resp, body := get(t, n.URL()+"/v1/peek?wait=60s", "X-Actor-Id", actor, "Traceparent", parentOf(actorTrace))
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	status, _ := call(t, http.MethodDelete, n.URL()+"/v1/dequeue/"+resp.Header.Get("MessageId"), actor, "")
	require.Equal(t, http.StatusOK, status)
	request, notice := <-requests, <-notices
	end()
	domains.Wait()
	n.stop()

	received, process := r.spanNamed(t, "receive dataavailable-fifo"), r.spanNamed(t, "process dataavailable-fifo")
	requireChild(t, received, domainTrace, aSpan)
	requireChild(t, process, domainTrace, idOf(received))
	require.Contains(t, r.childNames(received), "settle dataavailable-fifo")
	require.Equal(t, "a=b", received.GetTraceState())
	peek, dequeue := r.spanNamed(t, peekRoute), r.spanNamed(t, dequeueRoute)
	requireChild(t, peek, actorTrace, aSpan)
	requireLinks(t, peek, process)
	requireLinks(t, dequeue, peek)
	requested, notified := r.spanNamed(t, "send charges"), r.spanNamed(t, "send charges-dequeue")
	requireChild(t, requested, actorTrace, idOf(peek))
	requireChild(t, notified, actorTrace, idOf(peek))
	require.Contains(t, r.childNames(requested), "settle charges-reply")
	require.Equal(t, "00-"+actorTrace+"-"+idOf(requested)+"-01", request.TraceParent)
	require.Equal(t, "00-"+actorTrace+"-"+idOf(notified)+"-01", notice.TraceParent)
	require.Equal(t, "servicebus", attribute(requested, "messaging.system"))
}

func TestTrace_OfAPeekThatWaitsIsOneSpan(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, settings(""))
	var waiting sync.WaitGroup
	waiting.Go(func() {
		resp, body := get(t, n.URL()+"/v1/peek?wait=60s", "Traceparent", parentOf(actorTrace))
		assert.Equal(t, 200, resp.StatusCode, body)
	})
	require.Eventually(t, func() bool {
		_, metrics := call(t, http.MethodGet, n.URL()+"/metrics", "", "")
		return strings.Contains(metrics, "messagehub_http_peeks_waiting 1")
	}, 30*time.Second, time.Millisecond)
	status, body := send(t, n.Node, http.MethodPost, "/v1/data-available", "application/json", event, "Traceparent", parentOf(domainTrace))
	require.Equal(t, 202, status, body)
	waiting.Wait()
	n.stop()
	peek, save := r.spanNamed(t, peekRoute), r.spanNamed(t, saveRoute)
	requireLinks(t, peek, save)
	require.Less(t, peek.GetStartTimeUnixNano(), save.GetStartTimeUnixNano())
}

func TestTrace_IsSampledAsItsParentRequests(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, settings(""))
	unsampled := strings.TrimSuffix(parentOf(actorTrace), "1") + "0"
	resp, _ := get(t, n.URL()+"/v1/peek", "Traceparent", unsampled)
	require.Equal(t, 204, resp.StatusCode)
	n.stop()
	require.Empty(t, r.all(peekRoute))
	require.Equal(t, actorTrace, logLine(t, n.log.String(), "/v1/peek")["trace_id"], "the log has it nevertheless")
}

func TestTrace_AnInvalidTraceparentIsIgnored(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, settings(""))
	for _, parents := range [][]string{
		{"00-00000000000000000000000000000000-0000000000000000-01"}, {parentOf(domainTrace), parentOf(actorTrace)}, {"nonsense"}, {strings.Repeat("0", 20<<10)},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/v1/peek", http.NoBody)
		require.NoError(t, err)
		req.Header["X-Actor-Id"], req.Header["Traceparent"] = []string{"a"}, parents
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 204, resp.StatusCode)
	}
	resp, _ := get(t, n.URL()+"/v1/peek", "Traceparent", parentOf(actorTrace), "Tracestate", "a="+strings.Repeat("b", 10<<10))
	require.Equal(t, 204, resp.StatusCode)
	n.stop()
	peeks := r.all(peekRoute)
	require.Len(t, peeks, 5)
	for _, p := range peeks[:4] {
		require.Empty(t, p.GetParentSpanId())
	}
	requireChild(t, peeks[4], actorTrace, aSpan)
	require.Empty(t, peeks[4].GetTraceState())
}

// Clients must not notice that the receiver of spans answers 500 or is
// unreachable; see package otlp.
func TestTrace_WithoutAReceiverNothingFails(t *testing.T) {
	r := newSpanReceiver(t)
	r.Close()
	n := startTraced(t, r, settings(""), "OTEL_BSP_MAX_QUEUE_SIZE=2", "OTEL_BSP_EXPORT_TIMEOUT=1")
	fetchEvent(t, n.Node, n.Node, n.Node)
	n.stop()
	require.Contains(t, n.log.String(), "spans were dropped")
}

func TestTrace_WithoutAProviderIsPassedOn(t *testing.T) {
	var out lockedBuffer
	n, stop := start(t, withListeners(""), node.Options{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
	charges := newCharges(t, n)
	ctx, end := context.WithCancel(t.Context())
	requests := make(chan *domainclient.Request, 1)
	var domains sync.WaitGroup
	domains.Go(func() {
		_ = charges.Serve(ctx, func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
			requests <- r
			return answerWithEventIDs(ctx, r)
		})
	})
	status, body := send(t, n, http.MethodPost, "/v1/data-available", "application/json", event, "Traceparent", parentOf(domainTrace))
	require.Equal(t, 202, status, body)
	resp, body := get(t, n.URL()+"/v1/peek", "Traceparent", parentOf(actorTrace), "Tracestate", "a=b")
	require.Equal(t, 200, resp.StatusCode, body)
	request := <-requests
	require.Equal(t, parentOf(actorTrace), request.TraceParent)
	require.Equal(t, "a=b", request.TraceState)
	end()
	domains.Wait()
	require.NoError(t, stop())
	require.Equal(t, domainTrace, logLine(t, out.String(), "/v1/data-available")["trace_id"])
	require.Equal(t, aSpan, logLine(t, out.String(), "/v1/peek")["span_id"])
}

func TestTrace_GoesToReceivers(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, pushSettings(""))
	receiver := startReceiver(t, nil)
	createSubscription(t, n.Node, `{"callback_url":"`+receiver.URL+`"}`)
	const traced = `{"specversion":"1.0","id":"e","source":"/test","type":"made","traceparent":"` + "00-" + domainTrace + "-" + aSpan + "-01" + `","data":{"n":1}}`
	status, body := send(t, n.Node, http.MethodPost, "/v1/events", "application/cloudevents+json", traced)
	require.Equal(t, http.StatusAccepted, status, body)
	got := <-receiver.calls
	n.stop()
	sent := r.spanNamed(t, "send subscription")
	requireChild(t, sent, domainTrace, aSpan)
	require.Equal(t, "00-"+domainTrace+"-"+idOf(sent)+"-01", got.header.Get("Traceparent"))
	require.Equal(t, parentOf(domainTrace), got.event["traceparent"], "the event is as it was sent")
	require.Equal(t, "204", attribute(sent, "http.response.status_code"))
}

func TestExemplars_NameTheTrace(t *testing.T) {
	r := newSpanReceiver(t)
	n := startTraced(t, r, settings(""))
	fetchEvent(t, n.Node, n.Node, n.Node)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/metrics", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	n.stop()
	for _, histogram := range []string{"messagehub_http_request_duration_seconds_bucket", "messagehub_cosmos_request_duration_seconds_bucket"} {
		found := slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, histogram) && strings.Contains(line, `trace_id="`+actorTrace+`"`)
		})
		require.True(t, found, histogram)
	}
}
