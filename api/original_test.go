package api_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// These tests call /api as the original's clients do. ORIGINAL.md lists which of them correspond to
// the original's tests.

// peekRoutes maps each Peek route of the original to the origins whose data the route returns. The
// routes have the same upper and lower case letters as in the original.
var peekRoutes = map[string][]string{
	"/api/Peek":              {"TimeSeries", "Aggregations", "MarketRoles", "MeteringPoints", "Charges"},
	"/api/peek/timeseries":   {"TimeSeries"},
	"/api/peek/aggregations": {"Aggregations"},
	"/api/peek/masterdata":   {"MarketRoles", "MeteringPoints", "Charges"},
}

// onEveryRoute runs test for each Peek route of the original and each origin.
func onEveryRoute(t *testing.T, test func(t *testing.T, f *hubFixture, route, origin string)) {
	t.Helper()
	for route, origins := range peekRoutes {
		for _, origin := range origins {
			t.Run(route+"/"+origin, func(t *testing.T) { test(t, serve(t), route, origin) })
		}
	}
}

// ids returns the numbers of the events that a body lists, in order.
func (a domainAnswer) ids() []string {
	a.t.Helper()
	var events []struct{ ID string }
	require.NoError(a.t, json.Unmarshal([]byte(a.body), &events))
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = strings.TrimLeft(e.ID[24:], "0")
	}
	return ids
}

func TestOriginal_PeeksUntilItDequeues(t *testing.T) {
	onEveryRoute(t, func(t *testing.T, f *hubFixture, route, origin string) {
		f.post(202, newEvent(1, "origin", origin, "documentType", "B"), newEvent(2, "origin", origin, "documentType", "A"), newEvent(3, "origin", origin, "documentType", "B"))
		bundle := id(71)
		first := f.do("GET", route+"?bundleId="+bundle, "").wants(200)
		require.Equal(t, []string{bundle}, first.header["Messageid"])
		require.Equal(t, []string{"B,A"}, first.header["Messagetype"])
		require.Equal(t, "application/json", first.header.Get("Content-Type"), "which it is, whatever was asked for")
		require.Equal(t, []string{"1", "2", "3"}, first.ids())
		again := f.do("GET", route+"?bundleId="+bundle, "").wants(200)
		require.Equal(t, first.body, again.body)
		require.Equal(t, bundle, f.do("GET", route, "").wants(200).header.Get("MessageId"))

		require.Empty(t, f.do("DELETE", "/api/Dequeue?bundleId="+bundle, "").wants(200).body)
		require.Empty(t, f.do("DELETE", "/api/Dequeue?bundleId="+bundle, "").wants(404).body)
		require.Empty(t, f.do("GET", route, "").wants(204).body)
	})
}

func TestOriginal_ReturnsNoDataOfOtherActors(t *testing.T) {
	onEveryRoute(t, func(t *testing.T, f *hubFixture, route, origin string) {
		f.post(202, newEvent(1, "origin", origin, "recipient", "other"))
		f.do("GET", route, "").wants(204)
		f.do("GET", route+"?bundleId="+id(71), "").wants(204)
	})
}

func TestOriginal_GeneratesAnIDIfNoneIsSuggested(t *testing.T) {
	onEveryRoute(t, func(t *testing.T, f *hubFixture, route, origin string) {
		f.post(202, newEvent(1, "origin", origin))
		got := f.do("GET", route+"?bundleId=%20", "").wants(200).header.Get("MessageId")
		require.Equal(t, got, f.do("GET", route, "").wants(200).header.Get("MessageId"))
		require.Len(t, got, 36)
	})
}

func TestOriginal_BundlesWhatMayBeBundled(t *testing.T) {
	for bundling, want := range map[string][]string{
		"FFF": {"1"}, "FTF": {"1"}, "FTT": {"1"}, "TFF": {"1"}, "TFT": {"1"}, "TTF": {"1", "2"}, "TTT": {"1", "2", "3"},
	} {
		t.Run(bundling, func(t *testing.T) {
			onEveryRoute(t, func(t *testing.T, f *hubFixture, route, origin string) {
				for i, c := range bundling {
					f.post(202, newEvent(i+1, "origin", origin, "supportsBundling", c == 'T'))
				}
				require.Equal(t, want, f.do("GET", route, "").wants(200).ids())
			})
		})
	}
}

func TestOriginal_WeighsBundles(t *testing.T) {
	onEveryRoute(t, func(t *testing.T, f *hubFixture, route, origin string) {
		f.post(202, newEvent(1, "origin", origin, "weight", 1<<31-1), newEvent(2, "origin", origin), newEvent(3, "origin", origin, "weight", 51_199), newEvent(4, "origin", origin))
		for _, want := range [][]string{{"1"}, {"2", "3"}, {"4"}} {
			got := f.do("GET", route, "").wants(200)
			require.Equal(t, want, got.ids())
			f.do("DELETE", "/api/dequeue?bundleid="+got.header.Get("MessageId"), "").wants(200)
		}
	})
}

func TestOriginal_ReturnsTheOldestEventsOfItsDomains(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1, "origin", "Charges"), newEvent(2, "origin", "MarketRoles"), newEvent(3, "origin", "MeteringPoints"))
	require.Equal(t, []string{"1"}, f.do("GET", "/api/peek/masterdata", "").wants(200).ids())
}

func TestOriginal_HasOneOpenBundleForEachRoute(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1), newEvent(2, "origin", "Aggregations"), newEvent(3, "origin", "Charges"), newEvent(4, "origin", "MarketRoles"))
	var open []string
	for i, route := range []string{"/api/peek/timeseries", "/api/peek/aggregations", "/api/peek/masterdata"} {
		a := f.do("GET", route+"?bundleId="+id(71+i), "").wants(200)
		open = append(open, a.header.Get("MessageId"))
	}
	require.Equal(t, []string{"1"}, f.do("GET", "/api/peek", "").wants(200).ids(), "plain Peek repeats the oldest")
	for i := len(open) - 1; i >= 0; i-- { // dequeue the newest bundle first
		f.do("DELETE", "/api/dequeue?bundleId="+open[i], "").wants(200)
	}
	require.Equal(t, []string{"4"}, f.do("GET", "/api/peek", "").wants(200).ids())
}

func TestOriginal_DequeuesOnlyTheActorsOpenBundle(t *testing.T) {
	f := serve(t)
	f.do("DELETE", "/api/dequeue?bundleId="+id(71), "").wants(404)
	f.post(202, newEvent(1))
	f.do("GET", "/api/peek?bundleId="+id(71), "").wants(200)
	require.Empty(t, f.do("DELETE", "/api/dequeue?bundleId="+id(71), "", "X-Actor-Id", "other").wants(404).body)
	f.do("DELETE", "/api/dequeue?bundleId="+id(71), "").wants(200)
}

func TestOriginal_ReadsPathsAndNamesInAnyCaseAndTheFirstValue(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	for _, path := range []string{
		"/api/Peek?BundleId=" + id(71),
		"/API/PEEK?BUNDLEID=" + id(71),
		"/aPi/pEEk/tImEsErIeS?bundleid=" + id(71) + "&bundleId=" + id(72) + "&BUNDLEID=nonsense",
		"/api/peek/?bundleId=" + id(71),
		"/api/peek/TimeSeries/",
		"/api/peek?" + "bundle%49d=" + id(71),
		"/api/peek?nobody=knows&this=&=&&%zz=1&bundleId=" + id(71),
		"/api/peek?log=true&bundleId=" + id(71),
	} {
		t.Run(path, func(t *testing.T) {
			require.Equal(t, id(71), f.do("GET", path, "").wants(200).header.Get("MessageId"))
		})
	}
	f.do("GET", "/api/peek/MasterData", "").wants(204)
	f.do("DELETE", "/Api/DEQUEUE/?BundleID="+id(71)+"&bundleid="+id(72), "").wants(200)
}

func TestOriginal_RequiresABundleIDToDequeue(t *testing.T) {
	f := serve(t)
	const detail = `{"code":"value_not_specified","message":"'Bundle Id' must not be empty.","target":"BundleId"},{"code":"invalid_UUID","message":"'Bundle Id' must have a valid guid.","target":"BundleId"}`
	for _, path := range []string{"/api/dequeue", "/api/dequeue?bundleId=", "/api/dequeue?bundleId=%20%09", "/api/dequeue?id=" + id(1)} {
		a := f.do("DELETE", path, "").wants(400)
		require.Equal(t, `{"error":{"code":"VALIDATION_EXCEPTION","message":"See details","details":[`+detail+`]}}`, a.body)
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
	}
}

func TestOriginal_ReturnsErrorsInTheFormatOfTheRequest(t *testing.T) {
	f := serve(t)
	for _, contentType := range []string{"application/xml", "Application/XML"} {
		a := f.do("GET", "/api/peek?bundleId=4711", "", "Content-Type", contentType).wants(400)
		require.Equal(t, "application/xml", a.header.Get("Content-Type"))
		require.Equal(t, `<?xml version="1.0" encoding="utf-8"?><Error><Code>VALIDATION_EXCEPTION</Code><Message>See details</Message>`+
			`<Details><Error><Code>invalid_UUID</Code><Message>'Bundle Id' must have a valid guid.</Message><Target>BundleId</Target></Error></Details></Error>`, a.body)
	}
	for _, contentType := range []string{"", "text/xml", "application/json", "application/xml; charset=utf-8"} {
		a := f.do("GET", "/api/peek?bundleId=4711", "", "Content-Type", contentType, "Accept", "application/xml").wants(400)
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
	}

	f.post(202, newEvent(1))
	f.do("GET", "/api/peek?bundleId="+id(71), "").wants(200)
	a := f.do("GET", "/api/peek?bundleId="+id(72), "", "Content-Type", "application/xml").wants(400)
	var e struct{ Code, Message string }
	require.NoError(t, xml.Unmarshal([]byte(a.body), &e))
	require.Equal(t, "VALIDATION_EXCEPTION", e.Code)
	require.Contains(t, e.Message, id(71), "the bundle that is open")
	require.NotContains(t, a.body, "<Target>")
	require.NotContains(t, a.body, "<Details>")
}

func TestOriginal_RefusesABundleIDThatWasUsed(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	f.do("GET", "/api/peek?bundleId="+id(71), "").wants(200)
	f.do("DELETE", "/api/dequeue?bundleId="+id(71), "").wants(200)
	f.post(202, newEvent(2))
	require.Equal(t, `{"error":{"code":"VALIDATION_EXCEPTION","message":"BundleIdAlreadyInUse"}}`,
		f.do("GET", "/api/peek?bundleId="+id(71), "").wants(400).body)
}

func TestOriginal_Answers401WithoutABody(t *testing.T) {
	f := serve(t)
	for _, route := range []string{"GET /api/peek", "GET /api/Peek/timeseries", "GET /api/peek/masterdata", "GET /api/peek/aggregations", "DELETE /api/dequeue?bundleId=4711"} {
		method, path, _ := strings.Cut(route, " ")
		for _, who := range []string{"", "a,b", strings.Repeat("a", 65)} {
			require.Empty(t, f.do(method, path, "", "X-Actor-Id", who).wants(401).body)
		}
		require.Empty(t, f.do(method, path, "", "X-Actor-Id", actor, "X-Actor-Id", actor).wants(401).body)
	}
	f.do("GET", "/api/peek", "", "X-Actor-Id", "nobody-has-heard-of").wants(204)
}

func TestOriginal_NeedsNoCorrelationID(t *testing.T) {
	f := serve(t)
	f.do("GET", "/api/peek", "", "correlationid", "c-4711").wants(204)
	f.logs.wait(t, `"correlation_id":"c-4711"`)
	f.do("GET", "/api/peek", "").wants(204)
	f.do("DELETE", "/api/dequeue?bundleId="+id(1), "").wants(404)
}

func TestOriginal_ReportsInternalErrors(t *testing.T) {
	const other = `{"error":{"code":"INTERNAL_ERROR","message":"An error occured while processing the request."}}` //nolint:misspell // as the original has it
	for _, tc := range []struct {
		err     error
		problem string
		body    string
		retry   bool
	}{
		{domain.Errorf(domain.Busy, "429 from secret"), "busy", `{"error":{"code":"INTERNAL_ERROR","message":"TMR"}}`, true},
		{domain.Errorf(domain.Unavailable, "secret"), "unavailable", other, true},
		{domain.Errorf(domain.Uncertain, "secret"), "uncertain", other, true},
		{domain.Errorf(domain.Damaged, "secret"), "damaged", other, false},
		{domain.Errorf(domain.NewerFormat, "secret"), "newer-format", other, true},
		{errors.New("secret"), "internal", other, false},
	} {
		t.Run(tc.problem, func(t *testing.T) {
			f := serve(t)
			f.store.next = func(context.Context) error { return tc.err }
			f.store.acknowledge = func() error { return tc.err }
			for _, a := range []domainAnswer{f.do("GET", "/api/peek", ""), f.do("DELETE", "/api/dequeue?bundleId="+id(1), "")} {
				require.Equal(t, tc.body, a.wants(500).body)
				require.Equal(t, tc.retry, a.header.Get("Retry-After") != "")
			}
			f.logs.wait(t, `"problem":"`+tc.problem+`"`)
		})
	}
}

func TestOriginal_Returns204ToTheLoserOfARace(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	f.store.next = func(context.Context) error { return hub.ErrOutpaced }
	require.Empty(t, f.do("GET", "/api/peek", "").wants(204).body)
	f.do("GET", "/v1/peek", "").problem(429, "busy")
}

func TestOriginal_HasNoDataWhileADomainDoesNotAnswer(t *testing.T) {
	for _, reason := range []string{hub.NoAnswer, "internal-error"} {
		f := serve(t)
		f.store.next = func(context.Context) error { return unansweredProblem(reason, "") }
		require.Empty(t, f.do("GET", "/api/peek", "").wants(204).body, "nothing tells its clients that there is a bundle")
	}
}

func TestOriginal_ReportsItsHealth(t *testing.T) {
	trouble := error(nil)
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.Ready = func(context.Context) error { return trouble } })
	require.Equal(t, "Healthy", f.do("GET", "/api/monitor/live", "", "X-Actor-Id", "").wants(200).body)
	require.Equal(t, "Healthy", f.do("GET", "/API/Monitor/Ready", "", "X-Actor-Id", "").wants(200).body)
	f.do("GET", "/api/monitor/other", "").problem(404, "no-such-route")
	trouble = errors.New("no store")
	require.Equal(t, "Unhealthy", f.do("GET", "/api/monitor/ready", "").wants(503).body)
	require.Equal(t, "Healthy", f.do("GET", "/api/monitor/live", "").wants(200).body)
	trouble = nil
	f.server.SetDraining()
	require.Equal(t, "Unhealthy", f.do("GET", "/api/monitor/ready", "").wants(503).body)
	f.logs.wait(t, "no store")
}

func TestBundle_IsTheSameInBothAPIs(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1), newEvent(2, "payload", map[string]any{"kwh": 1.5}))
	first := f.do("GET", "/api/peek?responseformat=json", "").wants(200)
	again := f.do("GET", "/v1/peek?format=json", "").wants(200)
	require.Equal(t, first.body, again.body)
	require.Equal(t, first.header.Get("MessageId"), again.header.Get("MessageId"))
	f.do("DELETE", "/v1/dequeue/"+first.header.Get("MessageId"), "").wants(200)
	f.do("DELETE", "/api/dequeue?bundleId="+first.header.Get("MessageId"), "").wants(404)
}
