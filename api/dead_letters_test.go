package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

const letters = "/v1/admin/dead-letters"

// A letterBus is a bus with dead letters that have the sequence numbers from 1 to letters. The
// bodies of those with even numbers are binary.
type letterBus struct {
	letters   int64
	err       error
	resendErr error
	who       string
	calls     []string
}

func (b *letterBus) letter(n int64) deadletters.DeadLetter {
	session := "5790001330552"
	return deadletters.DeadLetter{
		Number: n, MessageID: "m", Session: &session, EnqueuedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Reason: "damaged", Description: "why",
		DeliveryCount: 1, Size: 3, ContentType: "text/plain", Subject: "s", ResentBy: "kim",
	}
}

func (b *letterBus) Peek(_ context.Context, _ string, after int64, limit int) (found []deadletters.DeadLetter, err error) {
	for n := after + 1; n <= b.letters && len(found) < limit; n++ {
		found = append(found, b.letter(n))
	}
	return found, b.err
}

func (b *letterBus) Read(_ context.Context, _ string, n int64) (*deadletters.Content, error) {
	if n > b.letters {
		return nil, domain.Errorf(domain.NotFound, "no dead letter %d", n)
	}
	c := &deadletters.Content{DeadLetter: b.letter(n), Body: []byte("<b>"), Properties: map[string]string{"a": "b"}}
	if n%2 == 0 {
		c.Body, c.IsCut = []byte{0xff}, true
	}
	return c, b.err
}

func (b *letterBus) Resend(_ context.Context, queue string, numbers []int64, who string) (int, error) {
	b.who, b.calls = who, append(b.calls, "resend "+queue)
	return len(numbers), errors.Join(b.err, b.resendErr)
}

func (b *letterBus) Delete(_ context.Context, queue string, numbers []int64) (int, error) {
	b.calls = append(b.calls, "delete "+queue)
	return len(numbers), b.err
}

func (b *letterBus) Count(string) (int64, bool) { return b.letters, b.letters > 0 }

// serveLetters starts a hub for which b is the bus with the dead letters.
func serveLetters(t *testing.T, b *letterBus) *hubFixture {
	t.Helper()
	return serve(t, withLetters(b))
}

func withLetters(b *letterBus) func(*api.Options, *hub.Options) {
	return func(o *api.Options, _ *hub.Options) {
		o.DeadLetters = deadletters.New(deadletters.Options{
			Queues: []deadletters.Queue{{Name: "events", Use: "events"}, {Name: "a/b", NoResend: "no request waits"}},
			Bus:    b, Actions: memory.New(memory.Options{Clock: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }}),
		})
	}
}

// doUnvalidated sends a request whose path contains an escaped slash, and returns the body of the
// response. It does not validate the exchange against openapi.yaml, because the validator's router
// finds no route for such a path.
func (f *hubFixture) doUnvalidated(method, path, body string, status int) string {
	f.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(f.newRequest(method, path, strings.NewReader(body)))
	require.NoError(f.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	require.Equal(f.t, status, resp.StatusCode, "%s", text)
	return string(text)
}

const whoWhy = "who=kim&why=ticket+4711"

func TestDeadLetters_AreListed(t *testing.T) {
	f := serveLetters(t, &letterBus{letters: 3})
	require.JSONEq(t, `{"queues":[{"queue":"events","use":"events","deadLetters":3},{"queue":"a/b","use":"","deadLetters":3,"noResend":"no request waits"}]}`,
		f.do("GET", letters, "").wants(200).body)
	const one = `{"sequenceNumber":"1","messageId":"m","session":"5790001330552","enqueued":"2026-03-01T12:00:00Z","reason":"damaged","description":"why","deliveryCount":1,"bytes":3,"contentType":"text/plain","subject":"s","resentBy":"kim"}`
	require.JSONEq(t, `{"queue":"events","deadLetters":[`+one+`],"next":"1"}`, f.do("GET", letters+"?queue=events&limit=1", "").wants(200).body)
	require.JSONEq(t, `{"queue":"a/b","deadLetters":[]}`, f.do("GET", letters+"?queue=a/b&after=3", "").wants(200).body)
	require.JSONEq(t, `{"queue":"events","deadLetters":[]}`, f.do("GET", letters+"?queue=events&reason=other", "").wants(200).body)
	f = serveLetters(t, &letterBus{})
	require.JSONEq(t, `{"queues":[{"queue":"events","use":"events"},{"queue":"a/b","use":"","noResend":"no request waits"}]}`,
		f.do("GET", letters, "").wants(200).body, "Azure does not say how many there are")
}

func TestDeadLetter_IsShownWithItsBody(t *testing.T) {
	f := serveLetters(t, &letterBus{letters: 3})
	a := f.do("GET", letters+"/events/1?"+whoWhy, "").wants(200)
	require.Contains(t, a.body, `"properties":{"a":"b"},"text":"<b>"}`)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	require.Contains(t, f.doUnvalidated("GET", letters+"/a%2Fb/2?"+whoWhy, "", 200), `"base64":"/w==","cut":true}`)
	require.Contains(t, f.do("GET", letters+"/events/records", "").wants(200).body, `"who":"kim","why":"ticket 4711","what":"look","sequenceNumber":"1"`)
}

func TestDeadLetters_AreSentAgainAndDeleted(t *testing.T) {
	b := &letterBus{letters: 300}
	f := serveLetters(t, b)
	f.do("POST", letters+"/events/1/resend", `{`+why+`}`).wants(204)
	f.doUnvalidated("DELETE", letters+"/a%2Fb/2?"+whoWhy, "", 204)
	require.JSONEq(t, `{"count":100,"next":"100"}`, f.do("POST", letters+"/events/resend", `{`+why+`,"reason":"damaged","through":"300"}`).wants(200).body)
	require.JSONEq(t, `{"count":50}`, f.do("DELETE", letters+"/events?reason=damaged&after=250&through=300&"+whoWhy, "").wants(200).body)
	require.Equal(t, []string{"resend events", "delete a/b", "resend events", "delete events"}, b.calls)
	require.Equal(t, "kim", b.who)
	var answer struct {
		Records []struct{ What, Outcome, SequenceNumber, Reason string }
	}
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", letters+"/events/records?limit=10", "").wants(200).body), &answer))
	require.Equal(t, []struct{ What, Outcome, SequenceNumber, Reason string }{
		{"delete", "done", "", "damaged"}, {"resend", "done", "", "damaged"}, {"resend", "done", "1", "damaged"},
	}, answer.Records)
}

func TestDeadLetters_RefuseMalformedRequests(t *testing.T) {
	b := &letterBus{letters: 3}
	f := serveLetters(t, b)
	for _, tc := range []struct {
		method, path, body string
		status             int
		problem            string
	}{
		{"GET", "?after=3", "", 400, "invalid"},
		{"GET", "?queue=events&after=-1", "", 400, "invalid"},
		{"GET", "?queue=events&after=x", "", 400, "invalid"},
		{"GET", "?queue=events&limit=101", "", 400, "invalid"},
		{"GET", "?queue=events&all=true", "", 400, "invalid"},
		{"GET", "?queue=other", "", 404, "not-found"},
		{"GET", "/events/1", "", 400, "invalid"},
		{"GET", "/events/1?why=x", "", 400, "invalid"},
		{"GET", "/events/1?who=x", "", 400, "invalid"},
		{"GET", "/events/1?who=x&why=a%0Ab", "", 400, "invalid"},
		{"GET", "/events/x?" + whoWhy, "", 400, "invalid"},
		{"GET", "/events/99999999999999999999?" + whoWhy, "", 400, "invalid"},
		{"GET", "/events/4?" + whoWhy, "", 404, "not-found"},
		{"GET", "/other/1?" + whoWhy, "", 404, "not-found"},
		{"GET", "/other/records", "", 404, "not-found"},
		{"GET", "/events/records?limit=0", "", 400, "invalid"},
		{"POST", "/events/1/resend", `{"who":"kim"}`, 400, "invalid"},
		{"POST", "/events/1/resend", `{` + why + `,"force":true}`, 400, "invalid"},
		{"POST", "/events/4/resend", `{` + why + `}`, 404, "not-found"},
		{"POST", "/events/resend", `{` + why + `,"reason":"x"}`, 400, "invalid"},
		{"POST", "/events/resend", `{` + why + `,"reason":"x","through":"x"}`, 400, "invalid"},
		{"POST", "/events/resend", `{` + why + `,"reason":"x","through":"3","after":"3"}`, 400, "invalid"},
		{"DELETE", "/events/1", "", 400, "invalid"},
		{"DELETE", "/events/4?" + whoWhy, "", 404, "not-found"},
		{"DELETE", "/events?" + whoWhy, "", 400, "invalid"},
		{"DELETE", "/events?reason=damaged&" + whoWhy, "", 400, "invalid"},
		{"DELETE", "/events?reason=damaged&through=x&" + whoWhy, "", 400, "invalid"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			f.do(tc.method, letters+tc.path, tc.body).problem(tc.status, tc.problem)
		})
	}
	require.Contains(t, f.doUnvalidated("POST", letters+"/a%2Fb/1/resend", `{`+why+`}`, 409), "are not sent again: no request waits")
	require.Empty(t, b.calls)
	serve(t).do("GET", letters, "").problem(404, "not-found")
}

func TestDeadLetters_ReportErrorsOfTheBus(t *testing.T) {
	for kind, want := range map[domain.Kind]struct {
		status  int
		problem string
	}{
		domain.Unavailable: {503, "bus-unavailable"}, domain.Uncertain: {503, "resend-uncertain"}, domain.Busy: {429, "busy"},
		domain.Conflict: {409, "conflict"}, domain.NotFound: {404, "not-found"}, domain.Damaged: {500, "damaged"},
	} {
		b := &letterBus{letters: 3}
		f := serveLetters(t, b)
		f.do("GET", letters, "").wants(200)
		b.err = domain.Errorf(kind, "so says the bus")
		for _, a := range []domainAnswer{
			f.do("GET", letters+"?queue=events", ""), f.do("GET", letters+"/events/1?"+whoWhy, ""), f.do("DELETE", letters+"/events/1?"+whoWhy, ""),
			f.do("POST", letters+"/events/1/resend", `{`+why+`}`),
		} {
			require.Equal(t, "so says the bus", a.problem(want.status, want.problem).Detail)
		}
	}
}

func TestDeadLetters_RequireTheRoleOfEachOperation(t *testing.T) {
	f := serveTokens(t, withLetters(&letterBus{letters: 3}))
	reader := []string{"Authorization", "Bearer " + f.tokens.issuer.Role("operator.read")}
	f.do("GET", letters, "", reader...).wants(200)
	f.do("GET", letters+"?queue=events", "", reader...).wants(200)
	f.do("GET", letters+"/events/records", "", reader...).wants(200)
	f.do("GET", letters+"/events/1?"+whoWhy, "", reader...).problem(403, "missing-right")
	f.do("DELETE", letters+"/events/1?"+whoWhy, "", reader...).problem(403, "missing-right")
	f.do("DELETE", letters+"/events?reason=x&through=1&"+whoWhy, "", reader...).problem(403, "missing-right")
	f.do("POST", letters+"/events/1/resend", `{`+why+`}`, reader...).problem(403, "missing-right")
	f.do("GET", letters+"/events/1?why="+url.QueryEscape("ticket 4711"), "").wants(200)
	require.Contains(t, f.do("GET", letters+"/events/records", "").wants(200).body, `"who":"subject"`)
}

func TestDeadLetters_AreOnlyForOperators(t *testing.T) {
	f := serveLetters(t, &letterBus{letters: 3})
	for _, route := range []struct{ method, path, body string }{
		{http.MethodGet, letters, ""},
		{http.MethodGet, letters + "/events/1?" + whoWhy, ""},
		{http.MethodGet, letters + "/events/records", ""},
		{http.MethodPost, letters + "/events/1/resend", `{` + why + `}`},
		{http.MethodDelete, letters + "/events/1?" + whoWhy, ""},
		{http.MethodPost, letters + "/events/resend", `{` + why + `,"reason":"x","through":"1"}`},
		{http.MethodDelete, letters + "/events?reason=x&through=1&" + whoWhy, ""},
	} {
		f.do(route.method, route.path, route.body, "Authorization", "Bearer wrong").problem(401, "missing-token")
		if route.method == http.MethodPost {
			f.do(route.method, route.path, route.body, "Content-Type", "text/plain").problem(415, "unsupported-media-type")
		}
	}
}
