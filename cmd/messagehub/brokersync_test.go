package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const partyFile = `broker:
  producers:
    - {id: shop, name: The shop, token-file: shop.token}
  channels:
    - {id: prices, token-env: PRICES}
  consumers:
    - {channel: prices, id: billing, callback-url: 'http://127.0.0.1:1/a', token-env: BILLING}
`

// syncParties writes a file, and runs messagehub broker sync with it.
func syncParties(t *testing.T, hub, text string, environ []string, args ...string) result {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "shop.token"), []byte("hush-1\n"), 0o600))
	name := filepath.Join(folder, "hub.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	got := runWith(t, append([]string{tokenVariable + "=" + operatorToken, "PRICES=hush-2", "BILLING=hush-3"}, environ...),
		append([]string{"broker", "sync", name, "--url", hub}, args...)...)
	require.NotContains(t, got.out+got.err, "hush")
	got.err = strings.ReplaceAll(got.err, folder+string(filepath.Separator), "")
	return got
}

func TestBrokerSync_AppliesTheFile(t *testing.T) {
	hub := brokerHub(t)
	const created = "create           producer shop\ncreate           channel prices\ncreate           consumer prices/billing  http://127.0.0.1:1/a\n"
	require.Equal(t, result{0, created + "3 changes would be made; this was a dry run, nothing was changed\n", ""}, syncParties(t, hub, partyFile, nil, "--dry-run"))
	require.Equal(t, "there are no producers\n", brokerOK(t, hub, "list", "producers"))
	require.Equal(t, result{0, created + "3 changes made\n", ""}, syncParties(t, hub, partyFile, nil))

	const kept = "keep             producer shop\nkeep             channel prices\nkeep             consumer prices/billing  http://127.0.0.1:1/a\n"
	require.Equal(t, result{0, kept + "0 changes made\n", ""}, syncParties(t, hub, partyFile, nil))
	require.Contains(t, syncParties(t, hub, partyFile, nil, "--dry-run").out, "keep             channel prices\n    its token is sent: only the hub can compare it\n")

	brokerOK(t, hub, "put", "channel", "other", "--token", "x")
	brokerOK(t, hub, "put", "consumer", "prices", "audit", "--token", "x", "--callback-url", "http://127.0.0.1:1/audit")
	changed := "listen: 127.0.0.1:1234\n" + strings.NewReplacer("The shop", "Shop", "1/a", "1/b", ", token-env: BILLING", "").Replace(partyFile)
	require.Equal(t, result{0, "update           producer shop\n    name: The shop → Shop\n" +
		"update           channel prices\n    its token is replaced\n" +
		"update           consumer prices/billing  http://127.0.0.1:1/b\n    callback-url: http://127.0.0.1:1/a → http://127.0.0.1:1/b\n" +
		"not in the file  channel other\nnot in the file  consumer prices/audit  http://127.0.0.1:1/audit\n" +
		"3 changes made\n", ""}, syncParties(t, hub, changed, []string{"PRICES=hush-4"}))
	require.Contains(t, brokerOK(t, hub, "list", "consumers", "prices"), "http://127.0.0.1:1/b\n")
	require.Equal(t, 0, brokerAt(t, hub, "messages", "prices", "--token", "hush-4").status, "the token of the file")
	require.Equal(t, 1, brokerAt(t, hub, "messages", "prices", "--token", "hush-2").status)
}

// A fault anywhere in the file must prevent all changes.
func TestBrokerSync_ChecksTheWholeFileFirst(t *testing.T) {
	hub := brokerHub(t)
	for text, want := range map[string]string{
		"broker: {chanels: [{id: a}]}":                                                              "messagehub: broker.chanels (hub.yaml line 1): no such key; did you mean broker.channels?\n",
		"broker: {channels: [{id: a, token-env: NONE}]}":                                            "messagehub: channel a: token-env: the variable NONE is not set\n",
		"broker: {channels: [{id: a, token-file: none}]}":                                           "messagehub: channel a: token-file: open none: no such file or directory\n",
		"broker: {channels: [{id: a, token: 'hush hush'}]}":                                         "messagehub: channel a: token: want printable ASCII without blanks\n",
		"broker: {channels: [{id: a, token: x}, {id: b}]}":                                          "messagehub: nothing was changed: channel b: it is new and has no token; name a token-file or a token-env\n",
		"broker: {consumers: [{channel: a, id: b, token: x, callback-url: 'http://127.0.0.1:1/'}]}": "messagehub: nothing was changed: consumer a/b: channel a is neither in the file nor in the hub\n",
		"": "messagehub: hub.yaml: it has no producers, channels or consumers; want broker: {channels: [{id: …, token-file: …}]}\n",
	} {
		require.Equal(t, result{1, "", want}, syncParties(t, hub, text, nil), text)
	}
	require.Equal(t, "there are no channels\n", brokerOK(t, hub, "list", "channels"))
}

// If the hub fails after some changes, the command must report how many it has
// made. The next run must make the remaining changes.
func TestBrokerSync_MayBeRepeatedAfterAFailure(t *testing.T) {
	hub := brokerHub(t)
	target, err := url.Parse(hub)
	require.NoError(t, err)
	isBroken := true
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isBroken && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/consumer/") {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"title":"The store is unavailable","detail":"Repeat it."}`))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	got := syncParties(t, server.URL, partyFile, nil)
	require.Equal(t, 1, got.status)
	require.Equal(t, "create           producer shop\ncreate           channel prices\n", got.out)
	require.Equal(t, "messagehub: consumer prices/billing: The store is unavailable (503): Repeat it.; before the failure: 2 changes; the command may be repeated\n", got.err)
	isBroken = false
	require.Equal(t, result{0, "keep             producer shop\nkeep             channel prices\n" +
		"create           consumer prices/billing  http://127.0.0.1:1/a\n1 change made\n", ""}, syncParties(t, server.URL, partyFile, nil))
}
