package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/memory"
)

// withSubscriptions configures a server with subscriptions in memory.
func withSubscriptions(t *testing.T, opts subscribe.Options) func(*api.Options, *hub.Options) {
	t.Helper()
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	ports := subscribe.Ports{
		Definitions: memory.NewDefinitions(), Streams: memory.NewStreams(time.Hour, time.Now), Cursors: memory.NewCursors(time.Now),
		Dequeues: memory.New(memory.Options{}),
	}
	return func(o *api.Options, _ *hub.Options) { o.Subscriptions = subscribe.New(ports, keys, opts) }
}

const (
	subscriptions = "/v1/subscriptions"
	hidden        = "a very secret key"
)

// fullDraft contains every field of a subscription.
const fullDraft = `{"topic":"orders","callback_url":"https://example.org/hook","method":"PUT","encoding":"multipart/form-data",
	"form_fields":{"a":"b"},"payload_form_field":"data","hmac_key_id":"my key","hmac_secret_key":"` + hidden + `",
	"jmespath_query":"type == 'made'","attachments":{"n":{"type":"jmespath","expression":"n"}},
	"delivery":"sync","max_rate":2.5,"max_concurrency":1,"ordered":true,"headers":{"X-Key":"` + hidden + `","X-Also":"b"}}`

// shownDraft maps members of fullDraft that responses omit to the members that replace them.
var shownDraft = map[string]map[string]any{
	"hmac_secret_key": {"signed": true},
	"delivery":        {"delivery_mode": "sync"},
	"headers":         {"header_names": []any{"X-Also", "X-Key"}},
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var all map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	return all
}

func TestASubscription_IsCreatedListedPausedAndDeleted(t *testing.T) {
	f := serve(t, withSubscriptions(t, subscribe.Options{}))
	require.JSONEq(t, `{"subscriptions":[]}`, f.do("GET", subscriptions, "").wants(200).body)
	for _, method := range []string{"POST", "PUT"} {
		a := f.do(method, subscriptions, fullDraft).wants(201)
		one := decoded(t, a.body)
		path := a.header.Get("Location")
		require.Equal(t, subscriptions+"/"+one["uuid"].(string), path)
		require.Equal(t, actor, one["owner"])
		require.Equal(t, true, one["signed"])
		require.Equal(t, "my key", one["hmac_key_id"])
		for name, want := range decoded(t, fullDraft) {
			if shown, isHidden := shownDraft[name]; isHidden {
				require.NotContains(t, one, name)
				for name, want := range shown {
					require.Equal(t, want, one[name], name)
				}
				continue
			}
			require.Equal(t, want, one[name], name)
		}
		shown := decoded(t, f.do("GET", path, "").wants(200).body)
		require.Equal(t, "active", shown["delivery"].(map[string]any)["state"])
		delete(shown, "delivery")
		require.Equal(t, one, shown)
		require.Equal(t, true, decoded(t, f.do("POST", path+"/pause", "").wants(200).body)["paused"])
		require.Equal(t, false, decoded(t, f.do("POST", path+"/resume", "").wants(200).body)["paused"])
		require.Len(t, decoded(t, f.do("GET", subscriptions, "").wants(200).body)["subscriptions"], 1)
		f.do("GET", path, "", "X-Actor-Id", "another").problem(404, "not-found")
		f.do("DELETE", path, "", "X-Actor-Id", "another").problem(404, "not-found")
		require.NotEmpty(t, decoded(t, f.do("DELETE", path, "").wants(200).body)["timeDeleted"])
		f.do("DELETE", path, "").problem(404, "not-found")
		f.do("GET", path, "").problem(404, "not-found")
		f.do("POST", path+"/pause", "").problem(404, "not-found")
	}
}

func TestASubscription_ShowsWarnings(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	streams := memory.NewStreams(30*24*time.Hour, clock)
	ports := subscribe.Ports{Definitions: memory.NewDefinitions(), Streams: streams, Cursors: memory.NewCursors(clock), Dequeues: memory.New(memory.Options{})}
	f := serve(t, func(o *api.Options, _ *hub.Options) {
		o.Subscriptions = subscribe.New(ports, nil, subscribe.Options{Clock: clock})
	})
	path := f.do("POST", subscriptions, `{"callback_url":"https://example.org/"}`).wants(201).header.Get("Location")
	topic, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	_, err = streams.Append(t.Context(), topic, []domain.Message{{Payload: []byte("x")}})
	require.NoError(t, err)
	delivery := func() map[string]any {
		return decoded(t, f.do("GET", path, "").wants(200).body)["delivery"].(map[string]any)
	}
	require.NotContains(t, delivery(), "warnings")
	now = now.Add(20 * 24 * time.Hour)
	warnings := delivery()["warnings"].([]any)
	require.Len(t, warnings, 1)
	warning := warnings[0].(map[string]any)
	require.Equal(t, "expiring", warning["code"])
	expires, err := time.Parse(time.RFC3339Nano, warning["expires"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, now.Add(24*time.Hour), expires, time.Second)
	require.Contains(t, warning["detail"], "The oldest event that waits expires at "+expires.Format(time.RFC3339))
	require.NotContains(t, warning, "since")
	require.NotContains(t, warning, "count")
}

func TestAPutUnderAnId_IsIdempotentAndReplaces(t *testing.T) {
	f := serve(t, withSubscriptions(t, subscribe.Options{}))
	path := subscriptions + "/" + id(7)
	first := f.do("PUT", path, fullDraft).wants(201)
	require.Equal(t, first.body, f.do("PUT", path, fullDraft).wants(200).body)
	changed := strings.Replace(fullDraft, "/hook", "/other", 1)
	require.Equal(t, "https://example.org/other", decoded(t, f.do("PUT", path, changed).wants(200).body)["callback_url"])
	f.do("PUT", path, fullDraft, "X-Actor-Id", "another").problem(409, "conflict")
	f.do("PUT", subscriptions+"/mine", fullDraft).problem(400, "invalid")
	f.do("DELETE", path, "").wants(200)
	f.do("PUT", path, fullDraft).problem(409, "conflict")
}

func TestABadSubscription_IsNamedByItsPointer(t *testing.T) {
	f := serve(t, withSubscriptions(t, subscribe.Options{}))
	for body, pointer := range map[string]string{
		`{}`:                               "/callback_url",
		`{"callback_url":7}`:               "/callback_url",
		`{"callback_url":"/relative"}`:     "/callback_url",
		`{"callback_url":"wss://a"}`:       "/callback_url",
		`{"callback_url":"https://u:p@a"}`: "/callback_url",
		`"method":"GET"`:                   "/method",
		`"encoding":"text/plain"`:          "/encoding",
		`"form_fields":{"a/b":1}`:          "/form_fields/a~1b",
		`"form_fields":[]`:                 "/form_fields",
		`"form_fields":{"a":"b"}`:          "/form_fields",
		`"topic":"a b"`:                    "/topic",
		`"unknown":1`:                      "/unknown",
		`"es_query":{}`:                    "/es_query",
		`"owner":"me"`:                     "/owner",
		`"jmespath_query":"a["`:            "/jmespath_query",
		`"jmespath_query":"pad_left('a', ` + "`9`" + `)"`:                  "/jmespath_query",
		`"hmac_secret_key":7`:                                              "/hmac_secret_key",
		`"attachments":{"a":"b"}`:                                          "/attachments/a",
		`"attachments":{"a":{"type":"other","expression":"a"}}`:            "/attachments/a/type",
		`"attachments":{"a":{"type":"jmespath"}}`:                          "/attachments/a/expression",
		`"attachments":{"a":{"type":"jmespath","expression":"a["}}`:        "/attachments/a/expression",
		`"attachments":{"_x":{"type":"jmespath","expression":"a"}}`:        "/attachments/_x",
		`"attachments":{"a":{"type":"jmespath","expression":"a","x":"y"}}`: "/attachments/a/x",
		`"method":"PUT","method":"PUT"`:                                    "/method",
		`"delivery":"fast"`:                                                "/delivery",
		`"delivery":null`:                                                  "/delivery",
		`"delivery":"sync","topic":"data-available"`:                       "/delivery",
		`"max_rate":0`:          "/max_rate",
		`"max_rate":"5"`:        "/max_rate",
		`"max_rate":1e9`:        "/max_rate",
		`"max_concurrency":1.5`: "/max_concurrency",
		`"max_concurrency":65`:  "/max_concurrency",
		`"ordered":1`:           "/ordered",
		`"ordered":"true"`:      "/ordered",

		`"ordered":true,"max_concurrency":2`:           "/max_concurrency",
		`"headers":[]`:                                 "/headers",
		`"headers":{"X-A":1}`:                          "/headers/X-A",
		`"headers":{"X-A":"` + hidden + `","X-A":"b"}`: "/headers/X-A",
	} {
		if !strings.HasPrefix(body, "{") {
			body = `{"callback_url":"https://example.org/",` + body + `}`
		}
		a := f.do("POST", subscriptions, body)
		a.problem(400, "invalid")
		errors, _ := decoded(t, a.body)["errors"].([]any)
		require.Len(t, errors, 1, body)
		require.Equal(t, pointer, errors[0].(map[string]any)["pointer"], body)
	}
	f.do("POST", subscriptions, `[]`).problem(400, "not-json")
	f.do("POST", subscriptions, `{"form_fields":{"a"`).problem(400, "not-json")
	f.do("POST", subscriptions, `{}`, "Content-Type", "text/plain").problem(415, "unsupported-media-type")
	f.do("POST", subscriptions, fmt.Sprintf(`{"callback_url":%q}`, strings.Repeat("a", 128<<10))).problem(413, "body-too-large") // unless almost all of the body is read, the server closes the connection
	f.do("GET", subscriptions, "", "X-Actor-Id", "").problem(401, "missing-actor")
	require.JSONEq(t, `{"subscriptions":[]}`, f.do("GET", subscriptions, "").wants(200).body)
}

func TestSubscription_NeverShowsOrLogsItsSecret(t *testing.T) {
	f := serve(t, withSubscriptions(t, subscribe.Options{}))
	path := subscriptions + "/" + id(7)
	var answers []string
	keep := func(a domainAnswer) { answers = append(answers, a.body, fmt.Sprint(a.header)) }
	keep(f.do("POST", subscriptions, fullDraft))
	keep(f.do("PUT", path, fullDraft))
	keep(f.do("PUT", path, strings.Replace(fullDraft, "PUT", "GET", 1)))
	keep(f.do("PUT", path, `{"callback_url":"https://example.org/","hmac_secret_key":["`+hidden+`"]}`))
	keep(f.do("PUT", path, `{"callback_url":"https://example.org/","hmac_secret_key":"`+strings.Repeat(hidden, 50)+`"}`))
	keep(f.do("PUT", path, strings.TrimSuffix(fullDraft, "}")))
	keep(f.do("GET", path, ""))
	keep(f.do("GET", subscriptions, ""))
	keep(f.do("POST", path+"/pause", ""))
	keep(f.do("DELETE", path, ""))
	f.logs.wait(t, `"method":"DELETE"`)
	require.NotContains(t, strings.Join(answers, "\n"), hidden)
	require.NotContains(t, f.logs.String(), hidden)
}
