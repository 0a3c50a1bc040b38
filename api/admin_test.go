package api_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

const (
	token = "a-token-for-operators"
	admin = "/v1/admin/queues/" + actor
	why   = `"who":"kim","why":"ticket 4711"`
)

// local configures a server to which only this machine may send requests.
func local(o *api.Options, _ *hub.Options) { o.IsOwnHost, o.NoProxies = isOwnHost, true }

// isOwnHost accepts the loopback address on which a test's server listens.
func isOwnHost(host string) bool { return strings.HasPrefix(host, "127.0.0.1:") }

// adminRoutes contains all routes for operators, each with a valid body.
var adminRoutes = []struct{ method, path, body string }{
	{"GET", "/v1/admin/queues", ""},
	{"GET", admin, ""},
	{"GET", admin + "/records", ""},
	{"POST", admin + "/release", `{` + why + `,"bundleId":"` + id(1) + `"}`},
	{"POST", admin + "/skip", `{` + why + `,"bundleId":"` + id(1) + `"}`},
	{"POST", admin + "/replay", `{` + why + `,"group":"timeseries"}`},
	{"POST", admin + "/abandon", `{` + why + `,"origin":"TimeSeries","contentType":"RSM012"}`},
	{"POST", admin + "/freeze", `{` + why + `}`},
	{"POST", admin + "/thaw", `{` + why + `}`},
	{"POST", "/v1/admin/check", `{}`},
	{"GET", logLevelPath, ""},
	{"PUT", logLevelPath, `{` + why + `,"level":"info"}`},
	{"GET", "/v1/admin/find?id=" + id(1), ""},
}

func TestOperatorRoutes_RequireTheToken(t *testing.T) {
	for name, localOnly := range map[string]bool{"on a loopback address": true, "for everyone": false} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, checking(noFindings), func(o *api.Options, _ *hub.Options) {
				if localOnly {
					local(o, nil)
				}
				o.Limits.FailedLogins = 100
			})
			for _, route := range adminRoutes {
				for _, header := range []string{"", "Bearer", "Bearer ", "Bearer " + token + "x", "Bearer " + token[1:], "Basic " + token, token} {
					a := f.do(route.method, route.path, route.body, "Authorization", header)
					a.problem(401, "missing-token")
					require.Equal(t, "Bearer", a.header.Get("WWW-Authenticate"))
					require.NotContains(t, a.body, token)
				}
				a := f.do(route.method, route.path, route.body, "Authorization", "bearer "+token)
				require.Contains(t, []int{200, 204, 404}, a.status, route.path)
				require.NotContains(t, a.body, "missing-token")
			}
			require.NotContains(t, f.logs.String(), token)
		})
	}
}

func TestAdminRoutes_AreClosedWithoutAToken(t *testing.T) {
	for _, change := range []func(*api.Options, *hub.Options){local, checking(noFindings)} {
		f := serve(t, change, func(o *api.Options, _ *hub.Options) { o.AdminToken = "" })
		for _, route := range adminRoutes {
			for _, header := range []string{"", "Bearer", "Bearer ", "Bearer " + token} {
				p := f.do(route.method, route.path, route.body, "Authorization", header).problem(403, "admin-closed")
				require.Contains(t, p.Detail, "MESSAGEHUB_ADMIN_TOKEN")
			}
		}
	}
}

func TestOrder_IsRefusedFromOtherWebSites(t *testing.T) {
	f := serve(t, local, checking(noFindings))
	for _, route := range adminRoutes {
		if route.method == "POST" {
			for _, simple := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
				f.do(route.method, route.path, route.body, "Content-Type", simple).problem(415, "unsupported-media-type")
			}
			f.do("OPTIONS", route.path, "").problem(405, "method-not-allowed")
		}
		req := f.newRequest(route.method, route.path, strings.NewReader(route.body))
		req.Host = "evil.example"
		f.client.Transport.(*validatingTransport).t = t
		require.Equal(t, http.StatusBadRequest, f.send(req).status)
	}
}

func TestOrder_ChangesNothingIfItIsMalformed(t *testing.T) {
	f := serve(t, local)
	f.post(202, newEvent(1))
	f.do("GET", "/v1/peek?bundleId="+id(71), "").wants(200)
	bundle := `,"bundleId":"` + id(71) + `"`
	for _, tc := range []struct {
		name, path, body string
		status           int
		problem          string
		pointers         []string
	}{
		{"nothing", "/freeze", ``, 415, "unsupported-media-type", nil},
		{"no object", "/freeze", `[]`, 400, "not-json", nil},
		{"half an object", "/freeze", `{"who":"kim"`, 400, "not-json", nil},
		{"two objects", "/freeze", `{` + why + `}{}`, 400, "not-json", nil},
		{"no UTF-8", "/freeze", "{\"who\":\"\xff\"}", 400, "not-json", nil},
		{"nobody", "/freeze", `{"why":"x"}`, 400, "invalid", []string{"/who"}},
		{"no reason", "/freeze", `{"who":"kim"}`, 400, "invalid", []string{"/why"}},
		{"null", "/freeze", `{"who":null,"why":"x"}`, 400, "invalid", []string{"/who"}},
		{"a number", "/freeze", `{"who":7,"why":"x"}`, 400, "invalid", []string{"/who"}},
		{"twice", "/freeze", `{` + why + `,"why":"x"}`, 400, "invalid", []string{"/why"}},
		{"another case", "/freeze", `{"Who":"kim","why":"x"}`, 400, "invalid", []string{"/Who", "/who"}},
		{"more than there is", "/freeze", `{` + why + `,"until":"noon"}`, 400, "invalid", []string{"/until"}},
		{"an empty reason", "/freeze", `{"who":"kim","why":""}`, 400, "invalid", nil},
		{"a blank reason", "/freeze", `{"who":"kim","why":" "}`, 400, "invalid", nil},
		{"a reason in two lines", "/freeze", `{"who":"kim","why":"a\nb"}`, 400, "invalid", nil},
		{"a reason that moves the cursor", "/freeze", `{"who":"kim","why":"a\u001b[2J"}`, 400, "invalid", nil},
		{"a reason too long", "/freeze", `{"who":"kim","why":"` + strings.Repeat("x", 1001) + `"}`, 400, "invalid", nil},
		{"a name too long", "/freeze", `{"why":"x","who":"` + strings.Repeat("x", 201) + `"}`, 400, "invalid", nil},
		{"a book", "/freeze", `{"why":"` + strings.Repeat("x", 20_000) + `"}`, 413, "body-too-large", nil},
		{"no bundle", "/release", `{` + why + `}`, 400, "invalid", []string{"/bundleId"}},
		{"no bundle id", "/skip", `{` + why + `,"bundleId":"x"}`, 400, "invalid", nil},
		{"an unknown bundle", "/release", `{` + why + `,"bundleId":"` + id(72) + `"}`, 404, "not-found", nil},
		{"an unknown bundle to skip", "/skip", `{` + why + `,"bundleId":"` + id(72) + `"}`, 404, "not-found", nil},
		{"an unknown group", "/replay", `{` + why + `,"group":"gas"}`, 404, "unknown-group", nil},
		{"a group with a bundle open", "/replay", `{` + why + `,"group":"timeseries"}`, 409, "conflict", nil},
		{"a group that never had one", "/replay", `{` + why + `,"group":"masterdata"}`, 404, "not-found", nil},
		{"no cabinet", "/abandon", `{` + why + `}`, 400, "invalid", []string{"/origin", "/contentType"}},
		{"no content type", "/abandon", `{` + why + `,"origin":"TimeSeries","contentType":""}`, 400, "invalid", nil},
		{"a cabinet that does not exist", "/abandon", `{` + why + `,"origin":"TimeSeries","contentType":"none"}`, 404, "not-found", nil},
		{"a cabinet with a bundle open", "/abandon", `{` + why + `,"origin":"TimeSeries","contentType":"measured-data"}`, 409, "conflict", nil},
		{"a parameter", "/skip?force=true", `{` + why + bundle + `}`, 400, "invalid", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := f.do("POST", admin+tc.path, tc.body).problem(tc.status, tc.problem)
			if tc.pointers != nil {
				require.Equal(t, tc.pointers, p.pointers())
			}
		})
	}
	f.do("POST", "/v1/admin/queues/a%20b/freeze", `{`+why+`}`).problem(400, "invalid-actor")
	f.do("GET", admin+"/records?most=0", "").problem(400, "invalid")
	f.do("GET", admin+"/records?most=1001", "").problem(400, "invalid")
	f.do("GET", admin+"?verbose=1", "").problem(400, "invalid")
	require.JSONEq(t, `{"records":[]}`, f.do("GET", admin+"/records", "").wants(200).body)
	require.Equal(t, id(71), f.do("GET", "/v1/peek", "").wants(200).header.Get("MessageId"), "the bundle is still open, and nothing frozen")
}

func TestAnOperatorReleasesAStuckQueue(t *testing.T) {
	f := serve(t, local)
	f.post(202, newEvent(1), newEvent(2), newEvent(3, "origin", "Charges"))
	order := func(what, more string) domainAnswer { return f.do("POST", admin+"/"+what, "{"+why+more+"}") }
	peek := func() string { return f.do("GET", "/v1/peek/timeseries", "").wants(200).header.Get("MessageId") }

	first := f.do("GET", "/v1/peek/timeseries?bundleId="+id(71), "").wants(200).header.Get("MessageId")
	order("release", `,"bundleId":"`+first+`"`).wants(204)
	f.do("DELETE", "/v1/dequeue/"+first, "").problem(404, "not-found")
	second := peek()
	require.NotEqual(t, first, second)
	order("skip", `,"bundleId":"`+second+`"`).wants(204)
	f.do("GET", "/v1/peek/timeseries", "").wants(204)

	var replayed struct {
		BundleID string
		Events   int
	}
	require.NoError(t, json.Unmarshal([]byte(order("replay", `,"group":"timeseries"`).wants(200).body), &replayed))
	require.Equal(t, 2, replayed.Events)
	require.Equal(t, replayed.BundleID, peek())

	order("freeze", "").wants(204)
	f.do("GET", "/v1/peek", "").problem(503, "frozen")
	require.NotContains(t, f.do("GET", "/v1/peek", "").body, "kim", "the actor does not learn who its operators are")
	f.do("GET", "/v1/peek?wait=30s", "").problem(503, "frozen")
	f.do("DELETE", "/v1/dequeue/"+replayed.BundleID, "").problem(503, "frozen")
	for _, original := range []domainAnswer{f.do("GET", "/api/peek", ""), f.do("DELETE", "/api/dequeue?bundleId="+replayed.BundleID, "")} {
		require.Equal(t, "30", original.wants(500).header.Get("Retry-After"), "the original knows no 503")
	}
	f.post(202, newEvent(4))
	f.do("GET", "/v1/peek", "", "X-Actor-Id", "another").wants(204)
	var q struct {
		Frozen bool
		Freeze struct{ Who, Why string }
		Groups []struct {
			Group   string
			Waiting int
			Open    *struct{ BundleID string }
		}
		Cabinets []struct {
			Origin                 string
			Received, Acknowledged int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", admin, "").wants(200).body), &q))
	require.True(t, q.Frozen)
	require.Equal(t, "kim", q.Freeze.Who)
	require.NotEmpty(t, q.Freeze.Why)
	require.Equal(t, "timeseries", q.Groups[2].Group)
	require.Equal(t, 3, q.Groups[2].Waiting)
	require.Equal(t, replayed.BundleID, q.Groups[2].Open.BundleID)
	require.Equal(t, "Charges", q.Cabinets[0].Origin)
	require.Equal(t, 1, q.Cabinets[0].Received)

	order("thaw", "").wants(204)
	f.do("DELETE", "/v1/dequeue/"+replayed.BundleID, "").wants(200)
	require.Equal(t, 1, strings.Count(f.do("GET", "/v1/peek/timeseries", "").wants(200).body, `"sequence":`))

	var told struct {
		Records []struct{ What, Who, Why, BundleID, Group string }
	}
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", admin+"/records", "").wants(200).body), &told))
	var whats []string
	for _, r := range told.Records {
		require.Equal(t, "kim", r.Who)
		require.Equal(t, "ticket 4711", r.Why)
		whats = append(whats, r.What)
	}
	require.Equal(t, []string{"thaw", "freeze", "replay", "skip", "release"}, whats)
	require.Equal(t, second, told.Records[3].BundleID)
	require.Equal(t, "timeseries", told.Records[2].Group)
	require.Equal(t, 1, strings.Count(f.do("GET", admin+"/records?most=1", "").wants(200).body, `"what"`))
	f.logs.wait(t, `"what":"thaw"`)
}

// inOperatorBubble runs test in fake time with a server that accepts operatorRequest. check is the
// server's check of the stored data.
func inOperatorBubble(t *testing.T, check hub.Checker, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(serveBubble(t, newFixture(t, checking(check))))
	})
}

// operatorRequest returns the text of an operator's HTTP request.
func operatorRequest(path, body string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer " + token +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func TestWaitingPeek_EndsWhenItsActorIsFrozen(t *testing.T) {
	inOperatorBubble(t, nil, func(b *bubble) {
		start := time.Now()
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		bundle := b.exchange(b.dial(), strings.Replace(waitRequest, "?wait=20s", "", 1)).Header.Get("MessageId")
		require.Equal(b.t, 204, b.exchange(b.dial(), operatorRequest(admin+"/skip", "{"+why+`,"bundleId":"`+bundle+`"}`)).StatusCode)
		answered := b.sendWaiting(waitRequest)
		require.Equal(b.t, 204, b.exchange(b.dial(), operatorRequest(admin+"/freeze", "{"+why+"}")).StatusCode)
		b.after(start, 0, 503, answered)
	})
}

func TestWaitingPeek_ReturnsAReplayedBundle(t *testing.T) {
	inOperatorBubble(t, nil, func(b *bubble) {
		start := time.Now()
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		bundle := b.exchange(b.dial(), strings.Replace(waitRequest, "?wait=20s", "", 1)).Header.Get("MessageId")
		require.Equal(b.t, 204, b.exchange(b.dial(), operatorRequest(admin+"/skip", "{"+why+`,"bundleId":"`+bundle+`"}`)).StatusCode)
		answered := b.sendWaiting(waitRequest)
		require.Equal(b.t, 200, b.exchange(b.dial(), operatorRequest(admin+"/replay", "{"+why+`,"group":"timeseries"}`)).StatusCode)
		b.after(start, 0, 200, answered)
	})
}

func TestOperator_AbandonsLostEvents(t *testing.T) {
	f := serve(t, local)
	f.post(202, newEvent(1), newEvent(2), newEvent(3))
	recipient, err := domain.ParseActorID(actor)
	require.NoError(t, err)
	contentType, err := domain.ParseContentType("measured-data")
	require.NoError(t, err)
	key := domain.CabinetKey{Recipient: recipient, Origin: domain.TimeSeries, ContentType: contentType}
	order := `{` + why + `,"origin":"TimeSeries","contentType":"measured-data"}`
	f.do("POST", admin+"/abandon", order).problem(409, "conflict")
	f.store.Lose(key, 1, 2)
	f.do("GET", "/v1/peek", "").problem(500, "damaged")
	lost := `{"origin":"TimeSeries","contentType":"measured-data","events":2,"first":1,"last":2,"slots":[]}`
	require.JSONEq(t, lost, f.do("POST", admin+"/abandon", order).wants(200).body)
	require.Equal(t, 1, strings.Count(f.do("GET", "/v1/peek", "").wants(200).body, `"sequence":3`))
	var told struct {
		Records []struct {
			What string
			Lost json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", admin+"/records", "").wants(200).body), &told))
	require.Len(t, told.Records, 1)
	require.Equal(t, "abandon", told.Records[0].What)
	require.JSONEq(t, lost, string(told.Records[0].Lost))
	f.logs.wait(t, `"what":"abandon"`)
}
