package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/memory"
)

const (
	subscriptionA = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	subscriptionB = "1b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
)

// subscriptionHub starts an in-memory hub. It returns the hub's URL, and a list
// to which the hub's server appends each request that is not a GET.
func subscriptionHub(t *testing.T) (url string, changes *[]string) {
	t.Helper()
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	store := memory.New(memory.Options{})
	service := subscribe.New(subscribe.Ports{
		Definitions: memory.NewDefinitions(), Streams: memory.NewStreams(time.Hour, time.Now), Cursors: memory.NewCursors(time.Now), Dequeues: store,
	}, keys, subscribe.Options{})
	handler := api.New(api.Options{Hub: hub.New(store, store, store, hub.Options{}), Subscriptions: service, IsOwnHost: loopback.IsHost}).Handler()
	changes = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			*changes = append(*changes, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1/subscriptions/"))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, changes
}

// subscriptions runs a command about subscriptions with the hub at url.
func subscriptions(t *testing.T, url, name string, args ...string) result {
	t.Helper()
	return messagehub(t, "", append([]string{"subscriptions", name, "--url", url, "--actor", actorA}, args...)...)
}

func TestSubscriptions_ToObjectsShowTheTokenOfOperators(t *testing.T) {
	url := pushHub(t, func(cfg *config.Config) { cfg.Objects.Topic = true })
	t.Chdir(t.TempDir()) // this folder contains no hub's token
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "admin.token"), []byte(operatorToken+"\n"), 0o600))
	file := filepath.Join(folder, "subscriptions.yaml")
	require.NoError(t, os.WriteFile(file, []byte("actor: a\nsubscriptions:\n  - {uuid: "+subscriptionB+", topic: object-changed, callback_url: 'http://127.0.0.1:1/'}\n"), 0o600))
	create := []string{"subscriptions", "create", "--url", url, "--actor", "a", "--callback-url", "http://127.0.0.1:1/", "--topic", "object-changed", "--id", subscriptionA}
	sync := []string{"subscriptions", "sync", file, "--url", url}
	for _, args := range [][]string{create, sync} {
		got := runWith(t, nil, args...)
		require.Equal(t, 1, got.status)
		require.Contains(t, got.err, "The operator's token is missing or wrong (401)")
	}
	require.Equal(t, result{0, "created " + subscriptionA + "\n", ""}, runWith(t, []string{tokenVariable + "=" + operatorToken}, create...))
	require.Equal(t, 0, runWith(t, nil, append(create, "--data", folder)...).status)
	require.Equal(t, 0, runWith(t, []string{tokenVariable + "=" + operatorToken}, sync...).status)
	require.Equal(t, 0, runWith(t, nil, append(sync, "--data", folder)...).status)
}

func TestSubscriptions_AreCreatedShownAndDeleted(t *testing.T) {
	url, _ := subscriptionHub(t)
	headerFile := filepath.Join(t.TempDir(), "headers")
	require.NoError(t, os.WriteFile(headerFile, []byte("# of the gateway\nX-Also:hush\n"), 0o600))
	require.Equal(t, result{0, actorA + " has no subscriptions\n", ""}, subscriptions(t, url, "list"))
	full := []string{
		"--id", subscriptionA, "--callback-url", "https://example.org/hook", "--topic", "orders", "--filter", "type == 'made'", "--method", "PUT",
		"--encoding", "multipart/form-data", "--form-field", "a=b=c", "--payload-form-field", "data", "--attachment", "size=data.size",
		"--secret", "hush", "--hmac-key-id", "mine", "--delivery", "sync", "--max-rate", "2.5", "--max-concurrency", "1", "--ordered",
		"--header", "X-Key: hush: hush", "--header-file", headerFile,
	}
	require.Equal(t, result{0, "created " + subscriptionA + "\n", ""}, subscriptions(t, url, "create", full...))
	require.Equal(t, result{0, "replaced " + subscriptionA + "\n", ""}, subscriptions(t, url, "create", full...))
	got := subscriptions(t, url, "show", subscriptionA)
	require.Equal(t, 0, got.status, got.err)
	for _, want := range []string{
		"subscription      " + subscriptionA, "owner             " + actorA, "state             active", "topic             orders",
		"calls             PUT https://example.org/hook", "encoding          multipart/form-data", "form field        a=b=c", "message in field  data",
		"signed            yes", "HMAC key id       mine", "filter            type == 'made'", "attachment        size=data.size", "created           20",
		"header            X-Also\n", "header            X-Key\n", "delivery          sync", "at most           2.5 calls per second",
		"at most           1 calls at the same time", "order             one call at a time, in the order of the events\n",
	} {
		require.Contains(t, got.out, want)
	}
	require.NotContains(t, got.out, "unknown members")
	require.NotContains(t, got.out, "hush")
	var shown map[string]any
	require.NoError(t, json.Unmarshal([]byte(subscriptions(t, url, "show", "--json", subscriptionA).out), &shown))
	require.Equal(t, "orders", shown["topic"])

	require.Equal(t, result{0, "paused " + subscriptionA + "\n", ""}, subscriptions(t, url, "pause", subscriptionA))
	require.Equal(t, "SUBSCRIPTION                          TOPIC   STATE   SIGNED  CALLS\n"+
		subscriptionA+"  orders  paused  yes     https://example.org/hook\n", subscriptions(t, url, "list").out)
	require.Equal(t, result{0, "resumed " + subscriptionA + "\n", ""}, subscriptions(t, url, "resume", subscriptionA))
	require.Contains(t, subscriptions(t, url, "list", "--json").out, `"paused":false`)
	require.Equal(t, result{0, "deleted " + subscriptionA + "\n", ""}, subscriptions(t, url, "delete", subscriptionA))
	for _, name := range []string{"delete", "show", "pause", "rotate"} {
		got := subscriptions(t, url, name, subscriptionA)
		require.Equal(t, 1, got.status)
		require.Contains(t, got.err, "messagehub: Not found (404): there is no ")
	}
	require.Regexp(t, `^created [0-9a-f-]{36}\n$`, subscriptions(t, url, "create", "--callback-url", "https://example.org/").out)
}

func TestSubscriptionsRotate_ReplacesOnlyTheSecret(t *testing.T) {
	url, changes := subscriptionHub(t)
	subscriptions(t, url, "create", "--id", subscriptionA, "--callback-url", "https://example.org/", "--filter", "type == 'made'")
	before := subscriptions(t, url, "show", subscriptionA).out
	got := subscriptions(t, url, "rotate", subscriptionA)
	require.Equal(t, "replaced the secret of "+subscriptionA+"\n", got.err)
	require.Regexp(t, regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=\n$`), got.out)
	require.Equal(t, strings.Replace(before, "signed        no", "signed        yes", 1), subscriptions(t, url, "show", subscriptionA).out)
	require.Len(t, *changes, 2)
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("mine\n"), 0o600))
	require.Equal(t, result{0, "", "replaced the secret of " + subscriptionA + "\n"}, subscriptions(t, url, "rotate", subscriptionA, "--secret-file", file))
}

func TestSubscriptionsSync_KnowsLimitsHeadersAndDelivery(t *testing.T) {
	url, changes := subscriptionHub(t)
	text := "actor: " + actorA + "\nsubscriptions:\n  - uuid: " + subscriptionA + "\n    callback_url: https://example.org/a\n" +
		"    delivery: sync\n    max_rate: 0.5\n    max_concurrency: 1\n    ordered: true\n"
	file := syncFile(t, text+"    headers_file: {X-Key: hook.key}\n")
	require.Equal(t, 0, syncSubscriptions(t, url, file).status)
	shown := subscriptions(t, url, "show", subscriptionA).out
	require.Contains(t, shown, "header        X-Key\n")
	require.Contains(t, shown, "at most       0.5 calls per second\n")
	require.NotContains(t, shown, "hush")
	*changes = nil
	require.Equal(t, result{0, "keep             " + subscriptionA + "  https://example.org/a\n" +
		"    its headers are sent: only the hub can compare their values\n0 changes made\n", ""}, syncSubscriptions(t, url, file))
	require.Equal(t, []string{"PUT " + subscriptionA}, *changes)
	exported := subscriptions(t, url, "export")
	require.Equal(t, 0, exported.status)
	require.Empty(t, exported.err)
	*changes = nil
	require.Contains(t, syncSubscriptions(t, url, syncFile(t, exported.out)).out, "0 changes made\n")
	require.Empty(t, *changes, "what the file does not name is kept")
	require.Contains(t, subscriptions(t, url, "show", subscriptionA).out, "header        X-Key\n")
	file = syncFile(t, strings.Replace(text, "0.5", "7", 1)+"    headers: {}\n")
	require.Equal(t, result{0, "update           " + subscriptionA + "  https://example.org/a\n" +
		"    max_rate: 0.5 → 7\n    headers: X-Key → nothing\n1 change made\n", ""}, syncSubscriptions(t, url, file))
	require.NotContains(t, subscriptions(t, url, "show", subscriptionA).out, "X-Key")
}

// A hub of a later version returns members that this version does not know. The
// command must name them.
func TestSubscriptionsShow_NamesWhatItDoesNotKnow(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"uuid":"` + subscriptionA + `","owner":"` + actorA + `","topic":"events","callback_url":"https://example.org/","future":5}`))
	}))
	defer server.Close()
	require.Contains(t, subscriptions(t, server.URL, "show", subscriptionA).out, "unknown members  future\n")
}

func TestSubscriptionsShow_HasTheWarningsOfTheHub(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"uuid":"` + subscriptionA + `","owner":"` + actorA + `","topic":"events","callback_url":"https://example.org/",
			"delivery":{"state":"failing","failures":9,"warnings":[{"code":"failing","detail":"All calls have failed."},{"code":"other","detail":"Of a newer hub."}]}}`))
	}))
	defer server.Close()
	got := subscriptions(t, server.URL, "show", subscriptionA)
	require.Contains(t, got.out, "warning       All calls have failed.\n")
	require.Contains(t, got.out, "warning       Of a newer hub.\n")
	require.NotContains(t, got.out, "unknown members")
}

func TestSubscriptions_RefuseAWrongCommandLine(t *testing.T) {
	const url = "https://example.org/"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"show"}, "want the id of one subscription"},
		{[]string{"list", "x"}, "want no argument"},
		{[]string{"pause", "x"}, `subscription id: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "x"`},
		{[]string{"list"}, "--actor is missing; say who you are"},
		{[]string{"create", "--actor", "a"}, "--callback-url is missing; say what the hub is to call"},
		{[]string{"create", "--actor", "a", "--callback-url", "/hook"}, `--callback-url: want http or https, got "/hook"`},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--id", "x"}, `--id: subscription id: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "x"`},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--filter", "a["}, "--filter: want a JMESPath expression: Expected *, received: the end of the expression, at byte 2"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--attachment", "_x=a"}, "--attachment _x: want a name that does not begin with _"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--attachment", "x"}, `--attachment: want NAME=VALUE, got "x"`},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--form-field", "a=b", "--form-field", "a=c"}, "--form-field: a occurs twice"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--form-field", "a=b"}, "--form-field: only multipart/form-data has fields"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--secret", "a", "--secret-file", "b"}, "--secret and --secret-file: want one of them"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--delivery", "fast"}, `--delivery: want async or sync, got "fast"`},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--delivery", "sync", "--topic", "data-available"}, "--delivery: want async: only the hub publishes to data-available, and it waits for no receiver"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--max-rate", "-1"}, "--max-rate: want 0.01 to 1000 calls per second, got -1"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--max-concurrency", "65"}, "--max-concurrency: want 1 to 64, got 65"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--header", "hush"}, "--header: want NAME: VALUE"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--header", "X-A: a", "--header", "X-A: b"}, "--header: X-A occurs twice"},
		{[]string{"create", "--actor", "a", "--callback-url", url, "--header", "Host: hush"}, "--header Host: the hub sets it"},
		{[]string{"sync"}, "want one FILE"},
	} {
		got := messagehub(t, "", append([]string{"subscriptions"}, tc.args...)...)
		require.Equal(t, result{2, "", "messagehub: " + tc.want + "\nmessagehub: see messagehub subscriptions " + tc.args[0] + " --help\n"}, got)
	}
}

func TestSubscriptions_ShowWhatTheHubRefuses(t *testing.T) {
	url, _ := subscriptionHub(t)
	subscriptions(t, url, "create", "--id", subscriptionA, "--callback-url", "https://example.org/")
	got := subscriptions(t, url, "create", "--id", subscriptionA, "--callback-url", "https://example.org/", "--topic", "other")
	require.Equal(t, result{1, "", "messagehub: the hub refused the subscription (400), and stored nothing\n" +
		"messagehub: topic: want events: the topic of a subscription cannot be changed\n"}, got)
}

// syncFile writes a file for messagehub subscriptions sync.
func syncFile(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "hook.key"), []byte("hush\n"), 0o600))
	name := filepath.Join(folder, "s.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func syncSubscriptions(t *testing.T, url, file string, args ...string) result {
	t.Helper()
	return messagehub(t, "", append([]string{"subscriptions", "sync", file, "--url", url}, args...)...)
}

const twoSubscriptions = "actor: " + actorA + "\nsubscriptions:\n" +
	"  - uuid: " + subscriptionA + "\n    callback_url: https://example.org/a\n    hmac_secret_key_file: hook.key\n" +
	"  - uuid: " + subscriptionB + "\n    callback_url: https://example.org/b\n    paused: true\n"

func TestSubscriptionsSync_IsRepeatable(t *testing.T) {
	url, changes := subscriptionHub(t)
	file := syncFile(t, twoSubscriptions)
	done := "create           " + subscriptionA + "  https://example.org/a\n" +
		"create           " + subscriptionB + "  https://example.org/b\n" +
		"pause            " + subscriptionB + "  https://example.org/b\n"
	require.Equal(t, result{0, done + "3 changes would be made; this was a dry run, nothing was changed\n", ""}, syncSubscriptions(t, url, file, "--dry-run"))
	require.Empty(t, *changes)
	require.Equal(t, result{0, done + "3 changes made\n", ""}, syncSubscriptions(t, url, file))
	require.Equal(t, []string{"PUT " + subscriptionA, "PUT " + subscriptionB, "POST " + subscriptionB + "/pause"}, *changes)
	*changes = nil
	require.Equal(t, result{0, "keep             " + subscriptionA + "  https://example.org/a\n" +
		"    its key is sent: only the hub can compare it\n" +
		"keep             " + subscriptionB + "  https://example.org/b\n0 changes made\n", ""}, syncSubscriptions(t, url, file))
	require.Equal(t, []string{"PUT " + subscriptionA}, *changes)
	require.Contains(t, subscriptions(t, url, "show", subscriptionA).out, "signed        yes\n")
}

func TestSubscriptionsSync_DeletesOnlyIfAsked(t *testing.T) {
	url, changes := subscriptionHub(t)
	require.Equal(t, 0, syncSubscriptions(t, url, syncFile(t, twoSubscriptions)).status)
	*changes = nil
	one := syncFile(t, "actor: "+actorA+"\nsubscriptions:\n  - uuid: "+subscriptionA+"\n    callback_url: https://example.org/new\n")
	changed := "update           " + subscriptionA + "  https://example.org/new\n    callback_url: https://example.org/a → https://example.org/new\n"
	require.Equal(t, result{0, changed + "not in the file  " + subscriptionB + "  https://example.org/b\n1 change made\n", ""}, syncSubscriptions(t, url, one))
	require.Equal(t, []string{"PUT " + subscriptionA}, *changes)
	*changes = nil
	kept := "keep             " + subscriptionA + "  https://example.org/new\ndelete           " + subscriptionB + "  https://example.org/b\n"
	require.Equal(t, result{0, kept + "1 change would be made; this was a dry run, nothing was changed\n", ""}, syncSubscriptions(t, url, one, "--prune", "--dry-run"))
	require.Empty(t, *changes)
	require.Equal(t, result{0, kept + "1 change made\n", ""}, syncSubscriptions(t, url, one, "--prune"))
	require.Equal(t, []string{"DELETE " + subscriptionB}, *changes)
	require.Contains(t, subscriptions(t, url, "show", subscriptionA).out, "signed        yes\n", "a file without a key keeps it")
}

func TestSubscriptionsExport_CanBeReadBySync(t *testing.T) {
	url, changes := subscriptionHub(t)
	require.Equal(t, 0, syncSubscriptions(t, url, syncFile(t, twoSubscriptions)).status)
	got := subscriptions(t, url, "export")
	require.Equal(t, 0, got.status, got.err)
	require.NotContains(t, got.out, "hush")
	*changes = nil
	again := syncSubscriptions(t, url, syncFile(t, got.out), "--prune")
	require.Equal(t, 0, again.status, again.err)
	require.True(t, strings.HasSuffix(again.out, "\n0 changes made\n"), again.out)
	require.Empty(t, *changes)
}

func TestSubscriptionsSync_ChangesNothingUnlessAllIsValid(t *testing.T) {
	url, changes := subscriptionHub(t)
	for text, want := range map[string]string{
		strings.Replace(twoSubscriptions, "https://example.org/b", "b", 1):   `line 6: callback_url: want http or https, got "b"`,
		strings.Replace(twoSubscriptions, "hook.key", "none.key", 1):         "line 5: hmac_secret_key_file: open ",
		strings.Replace(twoSubscriptions, "actor: "+actorA+"\n", "", 1):      "--actor is missing; say who you are",
		strings.Replace(twoSubscriptions, "actor: "+actorA, "actor: 1", 1):   "",
		"actor: " + actorA + "\nsubscriptions: []\n":                         "nothing was changed: the file has no subscriptions, so --prune would delete all subscriptions; delete them one by one",
		strings.Replace(twoSubscriptions, subscriptionB, subscriptionA, 1):   "uuid: " + subscriptionA + " is also in line 3",
		strings.Replace(twoSubscriptions, "paused: true", "hmac: 'hush'", 1): `line 8: "hmac": unknown`,
		strings.Replace(twoSubscriptions, "callback_url", "callback_uri", 1): `"callback_uri": unknown; known are attachments, callback_url,`,
	} {
		args := []string{"--prune"}
		if want == "" {
			args, want = []string{"--actor", actorA}, "has the subscriptions of 1"
		}
		got := syncSubscriptions(t, url, syncFile(t, text), args...)
		require.NotEqual(t, 0, got.status)
		require.Contains(t, got.err, want)
		require.Empty(t, got.out)
		require.NotContains(t, got.err, "hush")
	}
	require.Empty(t, *changes)
	require.Contains(t, syncSubscriptions(t, url, filepath.Join(t.TempDir(), "none.yaml")).err, "no such file")
}

func TestSubscriptionsSync_ReportsTheChangesBeforeAFailure(t *testing.T) {
	url, _ := subscriptionHub(t)
	file := syncFile(t, twoSubscriptions)
	subscriptions(t, url, "create", "--id", subscriptionB, "--callback-url", "https://example.org/b")
	subscriptions(t, url, "delete", subscriptionB)
	got := syncSubscriptions(t, url, file)
	require.Equal(t, 1, got.status)
	require.Equal(t, "create           "+subscriptionA+"  https://example.org/a\n", got.out)
	require.True(t, strings.HasPrefix(got.err, "messagehub: create "+subscriptionB+": The request conflicts with the current state (409): "), got.err)
	require.True(t, strings.HasSuffix(got.err, " was deleted; before the failure: 1 change; the command may be repeated\n"), got.err)
}
