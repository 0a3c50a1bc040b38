package subscriptionfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/subscriptionfile"
	"github.com/messagehub/messagehub/domain"
)

const (
	first  = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	second = "1b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	hidden = "hush-hush"
)

func id(t *testing.T, text string) domain.SubscriptionID {
	t.Helper()
	parsed, err := domain.ParseSubscriptionID(text)
	require.NoError(t, err)
	return parsed
}

func parse(t *testing.T, text string) (*subscriptionfile.File, error) {
	t.Helper()
	return subscriptionfile.Parse(strings.NewReader(text), "f.yaml", subscriptionfile.Source{
		File: func(name string) (string, error) {
			if name != "hook.key" {
				return "", errors.New("no such file")
			}
			return hidden, nil
		},
		Variable: func(name string) string { return map[string]string{"KEY": hidden}[name] },
		NewID:    func() (domain.SubscriptionID, error) { return id(t, second), nil },
	})
}

func TestParse_ReadsEachMember(t *testing.T) {
	f, err := parse(t, `
actor: 5790001330552
subscriptions:
  - uuid: `+first+`
    topic: orders
    callback_url: https://example.org/hook
    method: PUT
    encoding: multipart/form-data
    form_fields: {a: 1, b: &text two}
    payload_form_field: data
    hmac_key_id: mine
    hmac_secret_key_file: hook.key
    jmespath_query: type == 'made'
    attachments: {size: {type: jmespath, expression: data.size}, same: {type: jmespath, expression: *text}}
    delivery: sync
    max_rate: 0.5
    max_concurrency: 1
    ordered: true
    headers: {X-A: a}
    headers_file: {X-B: hook.key}
    headers_env: {X-C: KEY}
    paused: true
  - {uuid: `+second+`, callback_url: "https://example.org/", hmac_secret_key_env: KEY}
`)
	require.NoError(t, err)
	require.Equal(t, "5790001330552", f.Actor.String())
	require.Len(t, f.Subscriptions, 2)
	e := f.Subscriptions[0]
	require.Equal(t, first, e.ID.String())
	require.Equal(t, domain.Subscription{
		Topic: "orders", CallbackURL: "https://example.org/hook", Method: "PUT", Encoding: domain.FormEncoding,
		FormFields: map[string]string{"a": "1", "b": "two"}, PayloadFormField: "data", HMACKeyID: "mine", Filter: "type == 'made'",
		Attachments: map[string]string{"size": "data.size", "same": "two"}, IsSync: true, MaxRate: 0.5, MaxConcurrency: 1,
		IsOrdered: true,
	}, e.Draft)
	require.Equal(t, map[string]string{"X-A": "a", "X-B": hidden, "X-C": hidden}, e.Headers)
	require.Equal(t, hidden, *e.Secret)
	require.True(t, *e.Paused)
	e = f.Subscriptions[1]
	require.Equal(t, "POST", e.Draft.Method)
	require.Equal(t, hidden, *e.Secret)
	require.Nil(t, e.Paused)
	require.Nil(t, e.Headers)
}

func TestParse_NamesEachFaultByItsLine(t *testing.T) {
	entry := func(members string) string {
		return "subscriptions:\n  - uuid: " + first + "\n    callback_url: https://example.org/\n" + members
	}
	for text, want := range map[string]string{
		"":                                   "f.yaml: it is empty; want actor and subscriptions",
		"a: [":                               "f.yaml: line 1: did not find expected node content",
		"a: b\n---\nc: d":                    "f.yaml: want one document",
		"[]":                                 "f.yaml line 1: the file: want a mapping, name: value",
		"actor: x":                           "f.yaml line 1: subscriptions: missing",
		"actor: a b\nsubscriptions: []":      `f.yaml line 1: actor: actor id: want only A-Z a-z 0-9 . _ -, got "a b"`,
		"subscriptions: {}":                  "f.yaml line 1: subscriptions: want a list, each entry with a - before it",
		"subscriptions: [7]":                 "f.yaml line 1: an entry of subscriptions: want a mapping, name: value",
		"subscriptions: []\nother: 1":        `f.yaml line 2: "other": unknown; known are actor, subscriptions`,
		"subscriptions: []\nsubscriptions: ": "f.yaml line 2: subscriptions: it occurs twice",
		"subscriptions:\n  - callback_url: https://x":                           "f.yaml line 2: uuid: missing; choose one that no other subscription has, such as " + second,
		"subscriptions:\n  - uuid: " + first:                                    "f.yaml line 2: callback_url: missing",
		entry("    uuid: x"):                                                    "f.yaml line 4: uuid: it occurs twice",
		entry("    method: GET"):                                                `f.yaml line 2: method: want POST or PUT, got "GET"`,
		entry("    method: [POST]"):                                             "f.yaml line 4: method: want a text",
		entry("    method: "):                                                   "f.yaml line 4: method: want a text",
		entry("    form_fields: []"):                                            "f.yaml line 4: form_fields: want a mapping, name: value",
		entry("    form_fields: {a: []}"):                                       "f.yaml line 4: form_fields a: want a text",
		entry("    form_fields: {a: b, a: c}"):                                  "f.yaml line 4: a: it occurs twice",
		entry("    jmespath_query: 'a['"):                                       "f.yaml line 2: jmespath_query: want a JMESPath expression: Expected *, received: the end of the expression, at byte 2",
		entry("    attachments: {a: b}"):                                        "f.yaml line 4: attachment a: want a mapping, name: value\nf.yaml line 4: attachment a: want type: jmespath",
		entry("    attachments: {a: {type: jmespath, expression: a, b: c}}"):    `f.yaml line 4: "b": unknown; known are expression, type`,
		entry("    attachments: {_a: {type: jmespath, expression: a}}"):         "f.yaml line 2: attachments/_a: want a name that does not begin with _",
		entry("    paused: maybe"):                                              "f.yaml line 4: paused: want true or false",
		entry("    ordered: often"):                                             "f.yaml line 4: ordered: want true or false",
		entry("    delivery: fast"):                                             "f.yaml line 4: delivery: want async or sync",
		entry("    max_rate: 0"):                                                "f.yaml line 4: max_rate: want 0.01 to 1000 calls per second",
		entry("    max_rate: 2000"):                                             "f.yaml line 2: max_rate: want 0.01 to 1000 calls per second, got 2000",
		entry("    max_concurrency: [1]"):                                       "f.yaml line 4: max_concurrency: want 1 to 64 calls at the same time",
		entry("    headers: {Host: " + hidden + "}"):                            "f.yaml line 2: headers/Host: the hub sets it",
		entry("    headers: {X-A: a}\n    headers_env: {X-A: KEY}"):             "f.yaml line 5: headers_env: X-A occurs twice",
		entry("    headers_env: {X-A: NONE}"):                                   "f.yaml line 4: headers_env X-A: the variable NONE is not set",
		entry("    headers_file: {X-A: none}"):                                  "f.yaml line 4: headers_file X-A: no such file",
		entry("    hmac_secret_key_env: NONE"):                                  "f.yaml line 4: hmac_secret_key_env: the variable NONE is not set",
		entry("    hmac_secret_key_file: none"):                                 "f.yaml line 4: hmac_secret_key_file: no such file",
		entry("    hmac_secret_key_env: KEY\n    hmac_secret_key: " + hidden):   "f.yaml line 2: want one of hmac_secret_key_env and hmac_secret_key",
		entry("  - uuid: " + first + "\n    callback_url: https://example.org"): "f.yaml line 4: uuid: " + first + " is also in line 2",
		strings.Repeat("#", subscriptionfile.MaxSize+1):                         fmt.Sprintf("f.yaml: want at most %d bytes", subscriptionfile.MaxSize),
	} {
		_, err := parse(t, text)
		require.EqualError(t, err, want, "%.100s", text)
		require.NotContains(t, err.Error(), hidden)
	}
}

func TestParse_LimitsTheFaultsThatItReports(t *testing.T) {
	_, err := parse(t, "subscriptions: ["+strings.Repeat("7, ", 1000)+"]")
	require.Equal(t, 20, strings.Count(err.Error(), "want a mapping"))
}

// storedSubscription returns a subscription decoded from the JSON of a hub.
func storedSubscription(t *testing.T, text, more string) *hubclient.Subscription {
	t.Helper()
	var s hubclient.Subscription
	require.NoError(t, s.UnmarshalJSON([]byte(`{"uuid":"`+text+`","owner":"5790001330552","topic":"events","callback_url":"https://example.org/",
		"method":"POST","encoding":"application/json","form_fields":{},"payload_form_field":"payload","signed":false,"paused":false,
		"created":"2026-01-01T00:00:00Z"`+more+`}`)))
	return &s
}

// plan returns, as text, the steps that change the stored subscriptions all
// into those of a file with these members.
func plan(t *testing.T, members string, prune bool, all ...*hubclient.Subscription) ([]string, error) {
	t.Helper()
	f, err := parse(t, "subscriptions:\n  - uuid: "+first+"\n    callback_url: https://example.org/\n"+members)
	require.NoError(t, err)
	steps, err := subscriptionfile.Plan(f, all, prune)
	texts := make([]string, len(steps))
	for i, s := range steps {
		require.Equal(t, s.Entry != nil, s.Action == subscriptionfile.Create || s.Action == subscriptionfile.Update || s.Action == subscriptionfile.Keep)
		texts[i] = fmt.Sprint(s.Action, " ", s.ID.String()[:1])
		if s.Sends {
			texts[i] += " sends"
		}
		for _, why := range s.Why {
			require.NotContains(t, why, hidden)
			texts[i] += "; " + why
		}
	}
	return texts, err
}

func TestPlan_ChangesWhatDiffers(t *testing.T) {
	same, other := storedSubscription(t, first, ""), storedSubscription(t, second, "")
	signed, paused := storedSubscription(t, first, `,"signed":true`), storedSubscription(t, first, `,"paused":true`)
	for _, tc := range []struct {
		members string
		prune   bool
		stored  []*hubclient.Subscription
		want    []string
	}{
		{"", false, nil, []string{"create 0 sends"}},
		{"", false, []*hubclient.Subscription{same}, []string{"keep 0"}},
		{"", true, []*hubclient.Subscription{same}, []string{"keep 0"}},
		{"", false, []*hubclient.Subscription{other, same}, []string{"keep 0", "not in the file 1"}},
		{"", true, []*hubclient.Subscription{other, same}, []string{"keep 0", "delete 1"}},
		{"    method: PUT", false, []*hubclient.Subscription{same}, []string{"update 0 sends; method: POST → PUT"}},
		{"    jmespath_query: a", false, []*hubclient.Subscription{same}, []string{"update 0 sends; jmespath_query: nothing → a"}},
		{"    attachments: {a: {type: jmespath, expression: b}}", false, []*hubclient.Subscription{same}, []string{`update 0 sends; attachments: nothing → "a"="b"`}},
		{"    hmac_secret_key: " + hidden, false, []*hubclient.Subscription{same}, []string{"update 0 sends; hmac_secret_key is added"}},
		{"    hmac_secret_key: " + hidden, false, []*hubclient.Subscription{signed}, []string{"keep 0 sends"}},
		{"    hmac_secret_key: ''", false, []*hubclient.Subscription{signed}, []string{"update 0 sends; hmac_secret_key is removed"}},
		{"    hmac_secret_key: ''", false, []*hubclient.Subscription{same}, []string{"keep 0"}},
		{"", false, []*hubclient.Subscription{signed}, []string{"keep 0"}},
		{"    paused: true", false, nil, []string{"create 0 sends", "pause 0"}},
		{"    paused: false", false, nil, []string{"create 0 sends"}},
		{"    paused: true\n    method: PUT", false, []*hubclient.Subscription{same}, []string{"pause 0", "update 0 sends; method: POST → PUT"}},
		{"    paused: false\n    method: PUT", false, []*hubclient.Subscription{paused}, []string{"update 0 sends; method: POST → PUT", "resume 0"}},
		{"", false, []*hubclient.Subscription{paused}, []string{"keep 0"}},
	} {
		got, err := plan(t, tc.members, tc.prune, tc.stored...)
		require.NoError(t, err)
		require.Equal(t, tc.want, got, tc.members)
	}
}

func TestPlan_RejectsImpossibleChanges(t *testing.T) {
	_, err := plan(t, "    topic: other", false, storedSubscription(t, first, ""))
	require.EqualError(t, err, "line 2: subscription "+first+": topic: it is events, and cannot be changed; use another uuid")

	newer := storedSubscription(t, first, `,"rate":5`)
	require.Equal(t, []string{"rate"}, newer.Unknown)
	_, err = plan(t, "    method: PUT", false, newer)
	require.ErrorContains(t, err, "the subscription has rate, which this version does not know and would remove; use a newer messagehub")
	_, err = plan(t, "    hmac_secret_key: x", false, storedSubscription(t, first, `,"rate":5,"signed":true`))
	require.ErrorContains(t, err, "the subscription has rate")
	_, err = plan(t, "", false, newer)
	require.NoError(t, err)

	_, err = subscriptionfile.Plan(&subscriptionfile.File{}, []*hubclient.Subscription{newer}, true)
	require.ErrorContains(t, err, "--prune would delete all subscriptions")
}

func TestExport_IsReadAsItWasStored(t *testing.T) {
	texts := []string{"", "~", "null", "true", "yes", "0x1F", "1e3", "- a", "a: b", "#x", "'", `"`, "ü\u2028", "*a", "&a", "!!int 7", "2026-01-01", " a ", "<<", "="}
	var all []*hubclient.Subscription
	for i, text := range texts {
		s := storedSubscription(t, fmt.Sprintf("%08d-7a52-4d57-9d0c-3f1e6b8a2c41", i+1), `,"encoding":"multipart/form-data"`)
		s.FormFields, s.HMACKeyID, s.Paused, s.Signed = map[string]string{"a" + text: text}, text, i%2 == 0, true
		s.Filter, s.Attachments = "type == '1'", map[string]string{"x" + text: "a || `null`"}
		all = append(all, s)
	}
	var b strings.Builder
	require.NoError(t, subscriptionfile.Export(&b, "5790001330552", all))
	f, err := parse(t, b.String())
	require.NoError(t, err, b.String())
	require.Equal(t, "5790001330552", f.Actor.String())
	steps, err := subscriptionfile.Plan(f, all, true)
	require.NoError(t, err)
	require.Len(t, steps, len(texts))
	for _, step := range steps {
		require.Equal(t, subscriptionfile.Keep, step.Action, "%v", step)
		require.False(t, step.Sends)
	}
	b.Reset()
	require.NoError(t, subscriptionfile.Export(&b, "1", nil))
	require.Equal(t, "actor: \"1\"\nsubscriptions: []\n", b.String())
}
