package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

// line returns the only log line for a route.
func (f *hubFixture) line(route string) map[string]any {
	f.t.Helper()
	f.logs.wait(f.t, `"route":"`+route+`"`)
	var found map[string]any
	for text := range strings.Lines(f.logs.String()) {
		var line map[string]any
		require.NoError(f.t, json.Unmarshal([]byte(text), &line))
		if line["route"] == route {
			require.Nil(f.t, found, "two lines about one request")
			found = line
		}
	}
	return found
}

func TestARequestIsOneLineOfTheLog(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := serve(t, func(o *api.Options, _ *hub.Options) {
		o.Clock = func() time.Time { now = now.Add(20 * time.Millisecond); return now }
	})
	f.do("POST", "/v1/data-available", array(newEvent(1, "payload", "topsecret"), newEvent(1, "payload", "topsecret"), newEvent(2)), "X-Request-Id", "r-1")
	f.do("GET", "/v1/peek?bundleId="+id(71), "", "X-Request-Id", "r-2")
	f.do("GET", "/v1/peek/gas", "", "X-Request-Id", "r-3")
	f.do("DELETE", "/v1/dequeue/"+id(71), "", "X-Request-Id", "r-4")
	f.do("GET", "/v9/"+strings.Repeat("x", 200), "", "X-Request-Id", "r-5")

	post := f.line("/v1/data-available")
	for name, want := range map[string]any{
		"level": "INFO", "msg": "request", "request_id": "r-1", "method": "POST", "status": "202", "duration_ms": 20.0,
		"events": 3.0, "accepted": 2.0, "duplicates": 1.0, "conflicts": 0.0, "sent_bytes": 30.0,
	} {
		require.Equal(t, want, post[name], name)
	}
	peek := f.line("/v1/peek")
	for name, want := range map[string]any{"request_id": "r-2", "actor": actor, "bundle_id": id(71), "events": 2.0, "waiting": 2.0, "backlog": 0.0, "status": "200"} {
		require.Equal(t, want, peek[name], name)
	}
	group := f.line("/v1/peek/{group}")
	require.Equal(t, "unknown-group", group["problem"])
	require.Contains(t, group["error"], `"gas" is unknown`)
	dequeue := f.line("/v1/dequeue/{bundleId}")
	for name, want := range map[string]any{"request_id": "r-4", "actor": actor, "bundle_id": id(71), "events": 2.0} {
		require.Equal(t, want, dequeue[name], name)
	}
	other := f.line("unmatched")
	require.Equal(t, "404", other["status"])
	require.Less(t, len(other["path"].(string)), 100)
	require.NotContains(t, f.logs.String(), "topsecret")
}

func TestInternalFailures_AreLoggedAsErrors(t *testing.T) {
	f := serve(t)
	f.store.next = func(context.Context) error { return errors.New("disk on fire") }
	f.do("GET", "/v1/peek", "").problem(500, "internal")
	line := f.line("/v1/peek")
	require.Equal(t, "ERROR", line["level"])
	require.Contains(t, line["error"], "disk on fire")
}

func TestRequestID_IsAcceptedOrGenerated(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.NewRequestID = func() string { return "made" } })
	for given, want := range map[string]string{
		"":                       "made",
		"a.b-C_1":                "a.b-C_1",
		"a b":                    "made",
		"a\"}":                   "made",
		strings.Repeat("x", 128): strings.Repeat("x", 128),
		strings.Repeat("x", 129): "made",
	} {
		require.Equal(t, want, f.do("GET", "/healthz", "", "X-Request-Id", given).header.Get("X-Request-Id"), given)
	}
	f = serve(t)
	first, second := f.do("GET", "/healthz", "").header.Get("X-Request-Id"), f.do("GET", "/healthz", "").header.Get("X-Request-Id")
	require.NotEqual(t, first, second)
}

func TestMetrics_CountRequestsEventsAndBundles(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1), newEvent(2), newEvent(2))
	f.post(409, newEvent(2, "weight", 5), newEvent(3))
	f.do("GET", "/v1/peek", "").wants(200)
	bundle := f.do("GET", "/v1/peek/timeseries", "").wants(200).header.Get("MessageId")
	f.do("DELETE", "/v1/dequeue/"+bundle, "").wants(200)
	f.do("GET", "/v1/peek", "").wants(204)
	f.do("GET", "/nowhere/"+id(1), "").wants(404)
	f.do("GET", "/nowhere/"+id(2), "").wants(404)
	got := f.do("GET", "/metrics", "").wants(200).body
	for _, line := range []string{
		`messagehub_events_accepted_total{source="http"} 3`,
		`messagehub_events_duplicates_total{source="http"} 1`,
		`messagehub_events_conflicts_total{source="http"} 1`,
		"messagehub_events_peeked_total 6",
		"messagehub_events_dequeued_total 3",
		"messagehub_http_requests_in_flight 1",
		"messagehub_peek_backlog_events_count 3",
		"messagehub_peek_backlog_events_sum 0",
		`messagehub_http_request_duration_seconds_count{route="/v1/data-available",status="202"} 1`,
		`messagehub_http_request_duration_seconds_count{route="/v1/data-available",status="409"} 1`,
		`messagehub_http_request_duration_seconds_count{route="/v1/peek",status="204"} 1`,
		`messagehub_http_request_duration_seconds_count{route="unmatched",status="404"} 2`,
		fmt.Sprintf(`messagehub_http_received_bytes_total{route="/v1/data-available"} %d`,
			len(array(newEvent(1), newEvent(2), newEvent(2)))+len(array(newEvent(2, "weight", 5), newEvent(3)))),
	} {
		require.Contains(t, got, line+"\n")
	}
	require.NotContains(t, got, id(1), "no label may take its values from requests")
}

func TestReadyz_ReportsFailedChecksAndDraining(t *testing.T) {
	var trouble error
	f := serve(t, func(o *api.Options, _ *hub.Options) {
		o.Ready = func(context.Context) error { return trouble }
		o.Build = func() *api.Build {
			return &api.Build{Version: "v1", API: api.ContractVersion, Level: 2, StoreLevel: 1, AnnouncedLevel: 2}
		}
	})
	require.JSONEq(t, `{"status":"ready","build":{"version":"v1","api":"1","level":2,"storeLevel":1,"announcedLevel":2}}`, f.do("GET", "/readyz", "").wants(200).body)
	trouble = errors.New("no route to 10.0.0.7")
	a := f.do("GET", "/readyz", "")
	a.problem(503, "not-ready")
	require.NotContains(t, a.body, "10.0.0.7")
	trouble = nil
	f.do("GET", "/readyz", "").wants(200)
	f.server.SetDraining()
	require.Contains(t, f.do("GET", "/readyz", "").problem(503, "not-ready").Detail, "about to stop")
	require.JSONEq(t, `{"status":"ok"}`, f.do("GET", "/healthz", "").wants(200).body)
	f.do("GET", "/v1/peek", "").wants(204) // while it drains, the server still serves requests that arrive
}

func TestHarden_SetsTheLimitsBeforeAHandler(t *testing.T) {
	var server http.Server
	api.Harden(&server)
	require.Positive(t, server.ReadHeaderTimeout)
	require.Positive(t, server.IdleTimeout)
	require.Positive(t, server.MaxHeaderBytes)
	require.Zero(t, server.ReadTimeout, "it would cancel the work")
	require.Zero(t, server.WriteTimeout, "it would cut off big bundles")
}

func TestAHeaderThatIsTooBigIsRefused(t *testing.T) {
	f := serve(t)
	resp, err := f.client.Transport.(*validatingTransport).next.RoundTrip(f.withHeader("X-Huge", strings.Repeat("x", 64<<10)))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
}

func (f *hubFixture) withHeader(name, value string) *http.Request {
	req := f.newRequest("GET", "/v1/peek", nil)
	req.Header.Set(name, value)
	return req
}
