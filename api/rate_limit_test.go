package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

// A rateFixture is a server whose clock is stopped. Its clients may have any address.
type rateFixture struct {
	t      *testing.T
	server *api.Server
	now    time.Time
}

func serveRates(t *testing.T, change func(*api.Options)) *rateFixture {
	t.Helper()
	f := &rateFixture{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.server = newFixture(t, func(o *api.Options, _ *hub.Options) {
		o.Clock = func() time.Time { return f.now }
		change(o)
	}).server
	return f
}

// A rateRequest describes the client of a request.
type rateRequest struct {
	path, from, actor, body string
	forwarded               []string // of X-Forwarded-For
}

func (f *rateFixture) send(q rateRequest) *httptest.ResponseRecorder {
	f.t.Helper()
	method := http.MethodGet
	if q.body != "" {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(f.t.Context(), method, q.path, strings.NewReader(q.body))
	r.RemoteAddr = q.from
	r.Header.Set("Content-Type", "application/json")
	if q.actor != "" {
		r.Header.Set("X-Actor-Id", q.actor)
	}
	r.Header["X-Forwarded-For"] = q.forwarded
	w := httptest.NewRecorder()
	f.server.Handler().ServeHTTP(w, r)
	return w
}

func TestRequests_OfOneActorDoNotLimitOthers(t *testing.T) {
	f := serveRates(t, func(o *api.Options) { o.Limits.Requests = 2 })
	mine := rateRequest{path: "/v1/peek", from: "192.0.2.1:5", actor: "a"}
	for left := 1; left >= 0; left-- {
		answer := f.send(mine)
		require.Equal(t, 204, answer.Code)
		require.Equal(t, []string{fmt.Sprintf(`"requests";r=%d;t=0`, left)}, answer.Header().Values("RateLimit"))
		require.Equal(t, `"requests";q=2;w=1`, answer.Header().Get("RateLimit-Policy"))
	}
	refused := f.send(mine)
	require.Equal(t, 429, refused.Code)
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	require.Equal(t, `"requests";r=0;t=1`, refused.Header().Get("RateLimit"))
	require.Contains(t, refused.Body.String(), `"type":"urn:messagehub:problem:too-many-requests"`)
	require.Contains(t, refused.Body.String(), "This client has sent more than 2 requests a second")
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/api/monitor/live"} {
		require.Equal(t, 200, f.send(rateRequest{path: path, from: "192.0.2.1:5", actor: "a"}).Code, path)
	}
	original := f.send(rateRequest{path: "/api/Peek", from: "192.0.2.1:5", actor: "a"})
	require.Equal(t, 500, original.Code)
	require.JSONEq(t, `{"error":{"code":"INTERNAL_ERROR","message":"TMR"}}`, original.Body.String())
	require.Equal(t, "1", original.Header().Get("Retry-After"))
	other := mine
	other.actor = "b"
	require.Equal(t, 204, f.send(other).Code)
	f.now = f.now.Add(time.Second / 2)
	require.Equal(t, 204, f.send(mine).Code)
	require.Equal(t, 429, f.send(mine).Code)
}

func TestRequests_WithoutAnActorAreLimitedByAddress(t *testing.T) {
	f := serveRates(t, func(o *api.Options) { o.Limits.Requests = 1 })
	ask := func(from string) int { return f.send(rateRequest{path: "/v1/peek", from: from}).Code }
	require.Equal(t, 401, ask("192.0.2.1:5"))
	require.Equal(t, 429, ask("192.0.2.1:6"))
	require.Equal(t, 401, ask("192.0.2.2:5"))
	require.Equal(t, 401, ask("[2001:db8::1]:5"))
	require.Equal(t, 429, ask("[2001:db8::2]:5"), "of the same network")
	require.Equal(t, 401, ask("[2001:db8:1::1]:5"))
}

func TestEvents_OfOneClientAreLimited(t *testing.T) {
	f := serveRates(t, func(o *api.Options) { o.Limits.EventsPerSecond, o.Limits.Events = 1, 3 })
	next := 0
	send := func(n int) *httptest.ResponseRecorder {
		events := make([]string, n)
		for i := range events {
			next++
			events[i] = fmt.Sprintf(`{"id":"00000000-0000-0000-0000-%012d","recipient":"r","origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1}`, next)
		}
		return f.send(rateRequest{path: "/v1/data-available", from: "192.0.2.1:5", body: "[" + strings.Join(events, ",") + "]"})
	}
	answer := send(3)
	require.Equal(t, 202, answer.Code, answer.Body)
	require.Equal(t, `"events";q=3;w=3`, answer.Header().Get("RateLimit-Policy"))
	refused := send(2)
	require.Equal(t, 429, refused.Code)
	require.Equal(t, "2", refused.Header().Get("Retry-After"))
	require.Contains(t, refused.Body.String(), "This client has sent more than 1 events a second. Nothing of this request was stored")
	f.now = f.now.Add(time.Second)
	require.Equal(t, 202, send(1).Code)
	require.Equal(t, 429, send(1).Code)
}

func TestBuckets_AreBounded(t *testing.T) {
	f := serveRates(t, func(o *api.Options) { o.Limits.Requests = 1 })
	ask := func(client int) int {
		return f.send(rateRequest{path: "/v1/peek", from: "192.0.2.1:5", actor: fmt.Sprint(client)}).Code
	}
	for client := range api.MaxBuckets {
		require.Equal(t, 204, ask(client))
	}
	require.Equal(t, 204, ask(api.MaxBuckets), "the bucket that clients without one share")
	require.Equal(t, 429, ask(api.MaxBuckets+1))
	require.Equal(t, 429, ask(0), "no client has got a new bucket")
	require.Equal(t, api.MaxBuckets, api.Buckets(f.server))
	f.now = f.now.Add(time.Second)
	require.Equal(t, 204, ask(api.MaxBuckets+2))
	require.Equal(t, 204, ask(api.MaxBuckets+3))
	require.Equal(t, api.MaxBuckets, api.Buckets(f.server))
}

func TestForwardedFor_CountsOnlyFromTrustedProxies(t *testing.T) {
	const proxy, stranger = "10.0.0.9:5", "192.0.2.66:5"
	for _, tc := range []struct {
		name      string
		from      string
		forwarded []string
		client    string // client whose bucket the request uses
	}{
		{"no header", proxy, nil, "10.0.0.9"},
		{"one proxy", proxy, []string{"192.0.2.1"}, "192.0.2.1"},
		{"two proxies", proxy, []string{"192.0.2.1, 10.0.0.8"}, "192.0.2.1"},
		{"two headers", proxy, []string{"192.0.2.1", "10.0.0.8"}, "192.0.2.1"},
		{"a client that makes up others", proxy, []string{"192.0.2.7, 192.0.2.1"}, "192.0.2.1"},
		{"a client that makes up a proxy", proxy, []string{"192.0.2.7, 10.0.0.8, 192.0.2.1"}, "192.0.2.1"},
		{"with a port", proxy, []string{"192.0.2.1:1234"}, "192.0.2.1"},
		{"of IPv6 with a port", proxy, []string{"[2001:db8::1]:1234"}, "2001:db8::"},
		{"no address", proxy, []string{"192.0.2.1, unknown"}, "10.0.0.9"},
		{"of a stranger", stranger, []string{"192.0.2.1"}, "192.0.2.66"},
		{"of a proxy in IPv6 notation", "[::ffff:10.0.0.9]:5", []string{"192.0.2.1"}, "192.0.2.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := serveRates(t, func(o *api.Options) {
				o.Limits.Requests = 1
				o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")}
			})
			require.Equal(t, 401, f.send(rateRequest{path: "/v1/peek", from: tc.from, forwarded: tc.forwarded}).Code)
			require.Equal(t, 429, f.send(rateRequest{path: "/v1/peek", from: netip.AddrPortFrom(netip.MustParseAddr(tc.client), 7).String()}).Code)
		})
	}
}

func TestFailedLogins_BehindATrustedProxyCountForTheirClient(t *testing.T) {
	f := serveRates(t, func(o *api.Options) {
		o.Limits.FailedLogins = 1
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")}
	})
	ask := func(client string) int {
		return f.send(rateRequest{path: "/v1/admin/queues/a", from: "10.0.0.9:5", forwarded: []string{client}}).Code
	}
	require.Equal(t, 401, ask("192.0.2.1"))
	require.Equal(t, 429, ask("192.0.2.1"))
	require.Equal(t, 401, ask("192.0.2.2"))
}
