package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// jsonFields contains fields of newEvent(1) as JSON text, for tests that write JSON themselves.
const jsonFields = `"id":"00000000-0000-4000-8000-000000000001","recipient":"5790001330552","origin":"TimeSeries","contentType":"c","documentType":"D","supportsBundling":true`

func TestFaultsOfEventsAreNamedByPointer(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []string // expected faults, each as "pointer: part of the detail"
	}{
		{"id that is no UUID", array(newEvent(1, "id", "4711")), []string{"/0/id: want a UUID"}},
		{"id that is the nil UUID", array(newEvent(1, "id", "00000000-0000-0000-0000-000000000000")), []string{"/0/id: nil UUID"}},
		{"recipient out of alphabet", array(newEvent(1, "recipient", "Ø")), []string{"/0/recipient: A-Z a-z 0-9 . _ -"}},
		{"recipient too long", array(newEvent(1, "recipient", strings.Repeat("a", 65))), []string{"/0/recipient: 1 to 64 characters, got 65"}},
		{"unknown origin names the known ones", array(newEvent(1, "origin", "Gas")), []string{`/0/origin: "Gas" is unknown here; known are Aggregations, Charges, MarketRoles, MeteringPoints, TimeSeries`}},
		{"content type with a comma", array(newEvent(1, "contentType", "a,b")), []string{"/0/contentType: without commas"}},
		{"document type empty", array(newEvent(1, "documentType", "")), []string{"/0/documentType: 1 to 128 characters"}},
		{"flag as a string", array(newEvent(1, "supportsBundling", "true")), []string{"/0/supportsBundling: want true or false, got a string"}},
		{"weight 0", array(newEvent(1, "weight", 0)), []string{"/0/weight: want at least 1 (KB), got 0"}},
		{"weight negative", array(newEvent(1, "weight", -3)), []string{"/0/weight: want at least 1 (KB), got -3"}},
		{"weight minus zero", `[{` + jsonFields + `,"weight":-0}]`, []string{"/0/weight: want at least 1 (KB), got -0"}},
		{"weight fractional", array(newEvent(1, "weight", 1.5)), []string{"/0/weight: without fraction or exponent, got 1.5"}},
		{"weight whole, but written as a fraction", `[{` + jsonFields + `,"weight":2.0}]`, []string{"/0/weight: without fraction or exponent, got 2.0"}},
		{"weight with an exponent", `[{` + jsonFields + `,"weight":1e3}]`, []string{"/0/weight: without fraction or exponent, got 1e3"}},
		{"weight beyond 64 bits", `[{` + jsonFields + `,"weight":9223372036854775808}]`, []string{"/0/weight: at most 9223372036854775807 (KB), got 9223372036854775808"}},
		{"weight as a string", array(newEvent(1, "weight", "1")), []string{"/0/weight: want a whole number of KB, got a string"}},
		{"null is no weight", array(newEvent(1, "weight", nil)), []string{"/0/weight: got null"}},
		{"null is no id", array(newEvent(1, "id", nil)), []string{"/0/id: want a string, got null"}},
		{"a number is no name", array(newEvent(1, "recipient", 5790001330552)), []string{"/0/recipient: want a string, got a number"}},
		{"missing fields", `[{}]`, []string{"/0/id: missing", "/0/recipient: missing", "/0/origin: missing", "/0/contentType: missing", "/0/documentType: missing", "/0/supportsBundling: missing", "/0/weight: missing"}},
		{"unknown field", array(newEvent(1, "wieght", 1)), []string{"/0/wieght: unknown field; known are id, recipient,"}},
		{"names of fields are compared letter by letter", `[{` + jsonFields + `,"Weight":1,"weight":1}]`, []string{"/0/Weight: unknown field"}},
		{"a name with / and ~ is escaped in the pointer", array(newEvent(1, "a/b~c", 1)), []string{"/0/a~1b~0c: unknown field"}},
		{"doubled field", `[{` + jsonFields + `,"weight":1,"weight":1}]`, []string{"/0/weight: appears more than once"}},
		{"doubled field, spelled with an escape", `[{` + jsonFields + `,"weight":1,"w\u0065ight":2}]`, []string{"/0/weight: appears more than once"}},
		{"no object", `[7, "x", null, [], true]`, []string{"/0: got a number", "/1: got a string", "/2: got null", "/3: got an array", "/4: got a boolean"}},
		{"payload over the event's weight", array(newEvent(1, "payload", strings.Repeat("x", 1023))), []string{"/0/payload: has 1025 bytes, more than the weight of its event allows (1 KB)"}},
		{"payload over 1 MB", array(newEvent(1, "weight", 2000, "payload", strings.Repeat("x", 1<<20))), []string{"/0/payload: want at most 1048576 bytes, got 1048578"}},
		{"payload nested too deep", payload(strings.Repeat("[", 65) + strings.Repeat("]", 65)), []string{"/0/payload" + strings.Repeat("/0", 64) + ": payload: want at most 64 levels of nesting"}},
		{"payload with a long number", payload(`{"a":[` + strings.Repeat("9", 401) + `]}`), []string{"/0/payload/a/0: payload: want numbers of at most 400 characters, got 401"}},
		{"payload with a name twice", payload(`{"a":{"b":1,"b":2}}`), []string{"/0/payload/a/b: payload: want each name once in an object"}},
		{"payload with half of a surrogate pair", payload(`{"a":"\ud800"}`), []string{`/0/payload/a: payload: want both halves of a surrogate pair, got only \ud800`}},
		{
			"an unknown origin together with the other faults of its event",
			array(newEvent(1, "weight", 0), newEvent(2, "origin", "Gas", "weight", 0), newEvent(3, "origin", "a,b", "weight", 0)),
			[]string{"/0/weight: at least 1", "/1/weight: at least 1", `/1/origin: "Gas" is unknown here`, "/2/origin: ", "/2/weight: at least 1"},
		},
		{
			"every fault of every event, in order",
			array(newEvent(1, "id", "x", "weight", 0), newEvent(2), newEvent(3, "origin", "Gas"), newEvent(4, "colour", "red"), newEvent(2, "weight", 2)),
			[]string{"/0/id: UUID", "/0/weight: at least 1", "/1/id: stands for different contents", "/2/origin: unknown", "/3/colour: unknown field", "/4/id: stands for different contents"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := serve(t)
			p := f.do("POST", "/v1/data-available", tc.body).problem(400, "invalid")
			var got []string
			for i, e := range p.Errors {
				got = append(got, e.Pointer)
				pointer, text, _ := strings.Cut(tc.want[min(i, len(tc.want)-1)], ": ")
				if e.Pointer != pointer || !strings.Contains(e.Detail, text) {
					t.Errorf("fault %d: %s: %s; want %s: …%s…", i, e.Pointer, e.Detail, pointer, text)
				}
			}
			if len(got) != len(tc.want) {
				t.Errorf("faults at %q, want %q", got, tc.want)
			}
			f.do("GET", "/v1/peek", "").wants(204) // nothing was stored
		})
	}
}

// payload returns a request body with one event that has a payload.
func payload(text string) string { return `[{` + jsonFields + `,"weight":1,"payload":` + text + `}]` }

func TestLog_HasNoNamesOfAPayload(t *testing.T) {
	f := serve(t)
	f.do("POST", "/v1/data-available", payload(`{"canary":{"canary":1,"canary":2}}`)).problem(400, "invalid")
	f.logs.wait(t, "/0/payload: payload: want each name once in an object")
	require.NotContains(t, f.logs.String(), "canary")
}

func TestPayload_LimitsOfItsShapeAreOptions(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.Limits.PayloadDepth, o.Limits.PayloadNumber = 1, 2 })
	p := f.do("POST", "/v1/data-available", payload(`[[]]`)).problem(400, "invalid")
	require.Equal(t, []string{"/0/payload/0"}, p.pointers())
	p = f.do("POST", "/v1/data-available", payload(`123`)).problem(400, "invalid")
	require.Equal(t, []string{"/0/payload"}, p.pointers())
	f.do("POST", "/v1/data-available", payload(`[12]`)).wants(202)
}

// A payload was stored before the limits existed, and exceeds them. A Peek still returns it.
func TestPeek_ServesStoredPayloadsBeyondTheLimits(t *testing.T) {
	f := serve(t)
	deep := strings.Repeat("[", 5_000) + strings.Repeat("9", 500) + strings.Repeat("]", 5_000)
	recipient, err := domain.ParseActorID(actor)
	require.NoError(t, err)
	stored := domain.Event{Recipient: recipient, Origin: domain.TimeSeries, Weight: 20, Payload: []byte(deep)}
	stored.ID, err = domain.ParseEventID(id(1))
	require.NoError(t, err)
	stored.ContentType, err = domain.ParseContentType("c")
	require.NoError(t, err)
	stored.DocumentType, err = domain.ParseDocumentType("D")
	require.NoError(t, err)
	_, err = f.hub.Ingest(t.Context(), []domain.Event{stored})
	require.NoError(t, err)
	require.Contains(t, f.do("GET", "/v1/peek", "").wants(200).body, deep)
}

func TestDataAvailable_RejectsTextThatIsNotAnArrayOfEvents(t *testing.T) {
	sound := array(newEvent(1))
	for _, tc := range []struct{ name, body, pointer, detail string }{
		{"nothing but blanks", " \n", "", "the body is empty"},
		{"not JSON", "id;recipient", "", "want an array of events, at byte 0"},
		{"an object instead of an array", `{"id":1}`, "", "put a single event into [ ]"},
		{"trailing garbage", sound + " x", "", "want nothing after the array"},
		{"a second array", sound + sound, "", "want nothing after the array"},
		{"JSON lines", sound[1:len(sound)-1] + "\n" + sound[1:len(sound)-1], "", "put a single event into [ ]"},
		{"an array that is not closed", sound[:len(sound)-1], "", "the text ends inside the array, at byte"},
		{"an event that is not closed", sound[:len(sound)-4], "", "the text ends inside an event"},
		{"a comma too many", sound[:len(sound)-1] + ",]", "", "want another event after the comma"},
		{"a comma too few", `[{} {}]`, "", "want , or ] after an event, at byte 4"},
		{"a comma in front", `[,{}]`, "/0", "want an event, at byte 1"},
		{"a bracket of another kind", `[}`, "/0", "want an event, at byte 1"},
		{"a field without quotes", `[{id:1}]`, "/0", "want the name of a field in quotes, at byte 2"},
		{"a field without a value", `[{"id"}]`, "/0", "want : after the name of a field"},
		{"a field with nothing for a value", `[{"id":}]`, "/0", "want a value after the name of a field"},
		{"a comma too many in an event", `[{"id":"x",}]`, "/0", "want the name of a field in quotes"},
		{"brackets that do not match", `[{"id":[1}]`, "/0", "invalid character"},
		{"a value that is no JSON in an unknown field", `[{"colour":red}]`, "/0", "invalid character 'r'"},
		{"a payload that is no JSON", `[{` + jsonFields + `,"weight":1,"payload":{"a":1,}}]`, "/0", "invalid character '}'"},
		{"a weight with a leading zero", `[{` + jsonFields + `,"weight":01}]`, "/0", "invalid character '1'"},
		{"a weight with a plus", `[{` + jsonFields + `,"weight":+1}]`, "/0", "invalid character '+'"},
		{"a bare control character", "[{\"id\":\"a\tb\"}]", "/0", "control character"},
		{"an unknown escape", `[{"id":"\x"}]`, "/0", "invalid character 'x' in string escape code"},
		{"text that is not UTF-8", "[{\"id\":\"\xff\"}]", "/0", "want UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := serve(t)
			p := f.do("POST", "/v1/data-available", tc.body).problem(400, "not-json")
			last := p.Errors[len(p.Errors)-1]
			require.Equal(t, tc.pointer, last.Pointer)
			require.Contains(t, last.Detail, tc.detail)
			f.do("GET", "/v1/peek", "").wants(204)
		})
	}
}

func TestDataAvailable_ReportsFaultsBeforeASyntaxError(t *testing.T) {
	p := serve(t).do("POST", "/v1/data-available", `[{`+jsonFields+`,"weight":0},{"id":]`).problem(400, "not-json")
	require.Equal(t, []string{"/0/weight", "/1"}, p.pointers())
}

func TestFaults_AreCountedBeyondTheHundredListed(t *testing.T) {
	var events []testEvent
	for n := range 137 {
		events = append(events, newEvent(n+1, "origin", []string{"Gas", "no good"}[n%2]))
	}
	p := serve(t).post(400, events...).problem(400, "invalid")
	require.Len(t, p.Errors, 100)
	require.Contains(t, p.Detail, "137 faults; errors lists the first 100")
	require.Equal(t, "/99/origin", p.Errors[99].Pointer)
}

func TestAStoredEventIsReturnedAsItWasSent(t *testing.T) {
	f := serve(t)
	sent := newEvent(1, "weight", 2, "contentType", `a "b" \c`, "payload", map[string]any{"text": "å <&> \u2028", "n": 1.5, "list": []any{nil, true}})
	f.post(202, sent)
	body := f.do("GET", "/v1/peek", "").wants(200).body
	var got []testEvent
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Len(t, got, 1)
	isManifest(t, body)
	require.EqualValues(t, 1, got[0]["sequence"])
	delete(got[0], "sequence")
	sent["weight"] = 2.0
	require.Equal(t, sent, got[0])
}

func TestPayload_IsStoredInCompactForm(t *testing.T) {
	f := serve(t)
	payload := `{ "a" : [ 1.50 , 1e2 ],` + strings.Repeat(" ", 2000) + `"b":"\u0041 b" }`
	f.do("POST", "/v1/data-available", `[{`+jsonFields+`,"weight":1,"payload":`+payload+`}]`).wants(202)
	require.Contains(t, f.do("GET", "/v1/peek", "").wants(200).body, `"payload":{"a":[1.50,1e2],"b":"\u0041 b"}}`)
}

func TestPayload_NullMeansNoPayload(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1, "payload", nil))
	a := f.post(202, newEvent(1))
	require.JSONEq(t, `{"accepted":0,"duplicates":1}`, a.body)
	require.NotContains(t, f.do("GET", "/v1/peek", "").wants(200).body, "payload")
}

func TestTheLargestWeightIsAccepted(t *testing.T) {
	serve(t).do("POST", "/v1/data-available", `[{`+jsonFields+`,"weight":9223372036854775807}]`).wants(202)
}

func TestDataAvailable_AcceptsAnEmptyArray(t *testing.T) {
	require.JSONEq(t, `{"accepted":0,"duplicates":0}`, serve(t).do("POST", "/v1/data-available", ` [ ] `).wants(202).body)
}

func TestTheSameEventTwiceInARequestIsADuplicate(t *testing.T) {
	a := serve(t).post(202, newEvent(1), newEvent(2), newEvent(1))
	require.JSONEq(t, `{"accepted":2,"duplicates":1}`, a.body)
}

func TestDataAvailable_RejectsOneIDWithTwoContents(t *testing.T) {
	f := serve(t)
	p := f.post(409, newEvent(1), newEvent(2), newEvent(1, "weight", 9), newEvent(1, "weight", 8)).problem(409, "id-conflict")
	require.Equal(t, []string{"/0/id", "/2/id", "/3/id"}, p.pointers())
	require.Contains(t, p.Errors[0].Detail, id(1))
	f.do("GET", "/v1/peek", "").wants(204)
}

func TestOneIDForTwoRecipientsIsTwoEvents(t *testing.T) {
	a := serve(t).post(202, newEvent(1), newEvent(1, "recipient", "other"))
	require.JSONEq(t, `{"accepted":2,"duplicates":0}`, a.body)
}

func TestAnEventStoredWithOtherContentIsNamedAndTheOthersAreStored(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1), newEvent(2), newEvent(3, "recipient", "other"))
	p := f.post(409, newEvent(9), newEvent(3, "recipient", "other", "weight", 7), newEvent(2), newEvent(1, "documentType", "X"), newEvent(10)).problem(409, "already-stored")
	require.Equal(t, []string{"/1/id", "/3/id"}, p.pointers())
	require.Equal(t, 2, p.Accepted)
	require.Equal(t, 1, p.Duplicates)
	require.Equal(t, 4, strings.Count(f.do("GET", "/v1/peek", "").wants(200).body, `"id":`))
}

func TestAnOriginWhoseContentIsInlineMustSendIt(t *testing.T) {
	f := serve(t, func(_ *api.Options, o *hub.Options) {
		o.Content = map[domain.Origin]domain.ContentMode{domain.TimeSeries: domain.Inline}
	})
	p := f.post(400, newEvent(1, "payload", 1), newEvent(2)).problem(400, "invalid")
	require.Equal(t, []string{"/1/payload"}, p.pointers())
	f.post(202, newEvent(1, "payload", 1), newEvent(2, "payload", "two"))
	require.JSONEq(t, `[1,"two"]`, f.do("GET", "/v1/peek", "").wants(200).body)
}

func TestDataAvailable_AcceptsOnlyJSON(t *testing.T) {
	for _, tc := range []struct {
		name    string
		headers []string
		status  int
		detail  string
	}{
		{"a charset that JSON has anyway", []string{"Content-Type", `Application/JSON; charset="UTF-8"`}, 202, ""},
		{"a parameter that means nothing", []string{"Content-Type", "application/json; v=1"}, 202, ""},
		{"the coding that is none", []string{"Content-Encoding", "identity"}, 202, ""},
		{"no type", []string{"Content-Type", ""}, 415, "is missing; send application/json"},
		{"another type", []string{"Content-Type", "text/csv"}, 415, `"text/csv" is not accepted; send application/json`},
		{"two types", []string{"Content-Type", "application/json", "Content-Type", "text/csv"}, 415, "send application/json"},
		{"a malformed type", []string{"Content-Type", "application/json; ="}, 415, "send application/json"},
		{"another charset", []string{"Content-Type", "application/json; charset=utf-16"}, 415, "JSON is UTF-8"},
		{"a content coding", []string{"Content-Encoding", "gzip"}, 415, `"gzip" is not accepted`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := serve(t).do("POST", "/v1/data-available", array(newEvent(1)), tc.headers...).wants(tc.status)
			if tc.status == 415 {
				require.Contains(t, a.problem(415, "unsupported-media-type").Detail, tc.detail)
			}
		})
	}
}

func TestABodyOverTheLimitIsRefused(t *testing.T) {
	small := func(o *api.Options, _ *hub.Options) { o.Limits.RequestBody = 1000 }
	for _, length := range []string{"stated", "not stated"} {
		t.Run("length "+length, func(t *testing.T) {
			f := serve(t, small)
			req := f.newRequest("POST", "/v1/data-available", strings.NewReader(array(newEvent(1))+strings.Repeat(" ", 1000)))
			if length == "not stated" {
				req.ContentLength = -1
			}
			require.Contains(t, f.send(req).problem(413, "body-too-large").Detail, "larger than 1000 bytes")
			f.do("GET", "/v1/peek", "").wants(204)
		})
	}
	t.Run("exactly the limit is taken", func(t *testing.T) {
		body := array(newEvent(1))
		serve(t, small).do("POST", "/v1/data-available", body+strings.Repeat(" ", 1000-len(body))).wants(202)
	})
}

func TestMoreThan10000EventsAreRefused(t *testing.T) {
	f := serve(t)
	events := make([]string, 10_001)
	for n := range events {
		events[n] = strings.Trim(array(newEvent(n+1)), "[]")
	}
	p := f.do("POST", "/v1/data-available", "["+strings.Join(events, ",")+"]").problem(413, "too-many-events")
	require.Contains(t, p.Detail, "more than 10000 events")
	f.do("GET", "/v1/peek", "").wants(204)
	a := f.do("POST", "/v1/data-available", "["+strings.Join(events[:10_000], ",")+"]").wants(202)
	require.JSONEq(t, `{"accepted":10000,"duplicates":0}`, a.body)
}

func TestAFailureForOneRecipientDoesNotAffectOthers(t *testing.T) {
	f := serve(t)
	f.store.save = func(_ context.Context, recipient domain.ActorID) error {
		if recipient.String() == "other" {
			return domain.Errorf(domain.Unavailable, "no store")
		}
		return nil
	}
	events := []testEvent{newEvent(1), newEvent(2, "recipient", "other"), newEvent(3)}
	p := f.post(503, events...).problem(503, "unavailable")
	require.Contains(t, p.Detail, "2 are, the others may be")
	f.store.save = nil
	require.JSONEq(t, `{"accepted":1,"duplicates":2}`, f.post(202, events...).body)
}

func TestDataAvailable_RejectsQueryParameters(t *testing.T) {
	p := serve(t).do("POST", "/v1/data-available?dryRun=1", array(newEvent(1))).problem(400, "invalid")
	require.Equal(t, `Unknown query parameter "dryRun"; this route has none.`, p.Detail)
}

func TestEventsKeepTheirOrder(t *testing.T) {
	f := serve(t)
	for _, n := range []int{3, 1, 2} {
		f.post(202, newEvent(n*10), newEvent(n*10+1))
	}
	var got []testEvent
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", "/v1/peek", "").wants(200).body), &got))
	var order []string
	for i, e := range got {
		require.EqualValues(t, i+1, e["sequence"])
		order = append(order, fmt.Sprint(e["id"]))
	}
	require.True(t, slices.Equal(order, []string{id(30), id(31), id(10), id(11), id(20), id(21)}), "order %v", order)
}
