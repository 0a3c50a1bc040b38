package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

// A result contains the output and the exit status of a command.
type result struct {
	status   int
	out, err string
}

// messagehub runs a command in this process.
func messagehub(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(t.Context(), &process{
		args: append([]string{"messagehub"}, args...), environ: []string{tokenVariable + "=" + operatorToken},
		in: strings.NewReader(stdin), out: &out, err: &errs,
	})
	return result{status, out.String(), errs.String()}
}

// memoryHub starts an in-memory hub whose handler wrap wraps, and returns the
// hub's URL.
func memoryHub(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	store := memory.New(memory.Options{})
	h := hub.New(store, store, store, hub.Options{})
	handler := api.New(api.Options{Hub: h, Operator: hub.NewOperator(h, store, nil), IsOwnHost: loopback.IsHost, AdminToken: operatorToken}).Handler()
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

const actorA = "5790001330552"

// event returns the JSON line of event n.
func event(n int, more string) string {
	return fmt.Sprintf(`{"id":"00000000-0000-4000-8000-%012d","recipient":%q,"origin":"Charges","contentType":"ChargePriceList",`+
		`"documentType":"D18","supportsBundling":true,"weight":1%s}`+"\n", n, actorA, more)
}

func events(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		b.WriteString(event(n, ""))
	}
	return b.String()
}

const bundleID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"

func TestCommands_SendPeekAndDequeueAnEvent(t *testing.T) {
	url := memoryHub(t, nil)
	peek := []string{"peek", "--url", url, "--actor", actorA}

	require.Equal(t, result{0, "1 accepted, 0 duplicates, 0 conflicts\n", ""},
		messagehub(t, event(1, `,"payload": { "a": 1 }`), "send", "--url", url, "-"))
	want := result{
		0,
		"[\n" + `{"id":"00000000-0000-4000-8000-000000000001","recipient":"5790001330552","origin":"Charges","contentType":"ChargePriceList",` +
			`"documentType":"D18","supportsBundling":true,"weight":1,"sequence":1,"payload":{"a":1}}` + "\n]\n",
		"MessageId: " + bundleID + "\nMessageType: D18\nContent-Type: application/json\n",
	}
	require.Equal(t, want, messagehub(t, "", append(peek, "--bundle-id", bundleID)...))
	require.Equal(t, want, messagehub(t, "", append(peek, "--group", "masterdata", "--format", "JSON")...), "peek repeats the bundle")
	require.Equal(t, result{3, "", "no data waits for 5790001330552\n"}, messagehub(t, "", append(peek, "--group", "timeseries")...))

	dequeue := []string{"dequeue", "--url", url, "--actor", actorA, bundleID}
	require.Equal(t, result{0, "dequeued " + bundleID + "\n", ""}, messagehub(t, "", dequeue...))
	require.Equal(t, result{1, "", "messagehub: Not found (404): No bundle " + bundleID + " is open for this actor.\n"},
		messagehub(t, "", dequeue...))
	require.Equal(t, result{3, "", "no data waits for 5790001330552\n"}, messagehub(t, "", peek...))
}

func TestPeek_ReportsWhyItCannotFetch(t *testing.T) {
	url := memoryHub(t, nil)
	messagehub(t, event(1, ""), "send", "--url", url, "-")
	messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--bundle-id", bundleID)
	require.Equal(t,
		result{1, "", "messagehub: The request conflicts with the current state (409): bundle id: bundle " + bundleID + " is open; peek it without another id, or dequeue it first\n"},
		messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--bundle-id", "11111111-1111-4111-8111-111111111111"))
	require.Equal(t,
		result{1, "", "messagehub: No such group (404): group: \"weather\" is unknown here; known are aggregations, masterdata, timeseries\n"},
		messagehub(t, "", "peek", "--url", url, "--actor", actorA, "--group", "weather"))
}

func TestPeek_RejectsATruncatedBundle(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("MessageId", bundleID)
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "[\n")
	}))
	defer server.Close()
	got := messagehub(t, "", "peek", "--url", server.URL, "--actor", actorA)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "messagehub: the body is incomplete, so the output is not the whole bundle; peek again, and the hub repeats it (unexpected EOF)\n")
}

func TestCommands_RejectAWrongCommandLineBeforeSending(t *testing.T) {
	url := memoryHub(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("got %s %s", r.Method, r.URL) })
	})
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"obtain"}, `unknown command "obtain" for "messagehub"`},
		{[]string{"serve", "--bus", "x"}, "unknown flag: --bus"},
		{[]string{"serve", "now"}, `unknown command "now" for "messagehub serve"`},
		{[]string{"send"}, "want one FILE, or - for stdin"},
		{[]string{"send", "--servicebus", "--url", url, "-"}, "if any flags in the group [url servicebus] are set none of the others can be; [servicebus url] were all set"},
		{[]string{"send", "--servicebus=here", "-"}, `--servicebus: want a connection string (Endpoint=sb://…) or the name of a namespace such as example.servicebus.windows.net, got "here"`},
		{[]string{"domain", "now"}, `unknown command "now" for "messagehub domain"`},
		{[]string{"domain", "--name", "a b"}, `--name: origin: want only A-Z a-z 0-9 . _ -, got "a b"`},
		{[]string{"domain", "--actors", "0"}, "--actors: want 1 to 1000000 actors, got 0"},
		{[]string{"domain", "--send", "-1"}, "--send: want at least 0"},
		{[]string{"domain", "--rate", "NaN"}, "--rate: want at least 0"},
		{[]string{"domain", "--batch", "0"}, "--batch: want at least 1"},
		{[]string{"domain", "--weight", "0"}, "--weight: want at least 1 (KB)"},
		{[]string{"domain", "--content-size", "much"}, "--content-size: want a size such as 512KB, 32MB or 1048576, up to 1024GB, or weight"},
		{[]string{"domain", "--format", "pdf"}, `--format: want json or xml, got "pdf"`},
		{[]string{"domain", "--delay", "-1s"}, "--delay: want a time such as 2s"},
		{[]string{"domain", "--fail", "1.5"}, "--fail: want a part from 0 to 1, such as 0.1"},
		{[]string{"domain", "--fail", "1", "--fail-every", "1"}, "if any flags in the group [fail fail-every] are set none of the others can be; [fail fail-every] were all set"},
		{[]string{"domain", "--fail-reason", "Laziness"}, `--fail-reason: want DatasetNotFound, DatasetNotAvailable or InternalError, got "Laziness"`},
		{[]string{"domain", "--servicebus", "Endpoint=x"}, "--servicebus: the connection string of the bus: key \"Endpoint\" must not be empty"},
		{[]string{"domain", "--blob", "here"}, `--blob: want the URL of a storage account such as http://127.0.0.1:10000/devstoreaccount1, or its connection string, got "here"`},
		{[]string{"send", "--batch", "0", "-"}, "--batch: want at least 1, got 0"},
		{[]string{"send", "--url", "localhost:8080", "-"}, `--url: want the address of a hub such as http://127.0.0.1:8080, got "localhost:8080"`},
		{[]string{"send", "--timeout", "soon", "-"}, `--timeout: want a time such as 500ms or 1m30s, got "soon"`},
		{[]string{"peek", "--url", url}, "--actor is missing; say who you are"},
		{[]string{"peek", "--url", url, "--actor", "a b"}, `--actor: actor id: want only A-Z a-z 0-9 . _ -, got "a b"`},
		{[]string{"peek", "--url", url, "--actor", "a", "--bundle-id", "7"}, `--bundle-id: bundle id: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "7"`},
		{[]string{"peek", "--url", url, "--actor", "a", "--format", "pdf"}, `--format: format: want json or xml, got "pdf"`},
		{[]string{"peek", "--url", url, "--actor", "a", "--group", "a/b"}, `--group: group: want only A-Z a-z 0-9 . _ -, got "a/b"`},
		{[]string{"peek", "--url", url, "--actor", "a", "--wait", "-1s"}, "--wait: want a time such as 20s, got -1s"},
		{[]string{"queue", "waiting", "--url", url}, "--actor is missing; say who you are"},
		{[]string{"peek", "--url", url, "--actor", "a", "b"}, `unknown command "b" for "messagehub peek"`},
		{[]string{"dequeue", "--url", url, "--actor", "a"}, "want one BUNDLE, the MessageId that peek printed"},
		{[]string{"dequeue", "--url", url, "--actor", "a", "b"}, `bundle id: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "b"`},
		{[]string{"dequeue", "--url", url, bundleID}, "--actor is missing; say who you are"},
		{[]string{"queue", "show", "--url", url}, "want ACTOR"},
		{[]string{"queue", "show", "--url", url, "a b"}, `actor id: want only A-Z a-z 0-9 . _ -, got "a b"`},
		{[]string{"queue", "skip", "--url", url, "a", "--why", "x"}, "want ACTOR and BUNDLE"},
		{[]string{"queue", "skip", "--url", url, "a", "b", "--why", "x"}, `bundle id: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "b"`},
		{[]string{"queue", "replay", "--url", url, "a", "a/b", "--why", "x"}, `group: want only A-Z a-z 0-9 . _ -, got "a/b"`},
		{[]string{"queue", "freeze", "--url", url, "a"}, "--why is missing; say why, for the record"},
		{[]string{"queue", "melt", "a"}, `unknown command "melt" for "messagehub queue"; known are abandon, freeze, list, records, release, replay, show, skip, thaw, waiting`},
		{[]string{"emulator", "nosuch"}, `unknown command "nosuch" for "messagehub emulator"; known are blob, cosmos, servicebus`},
		{[]string{"emulator", "nosuch", "--in-memory"}, `unknown command "nosuch" for "messagehub emulator"; known are blob, cosmos, servicebus`},
		{[]string{"emulator", "cosmos", "nosuch", "--nosuch"}, `unknown command "nosuch" for "messagehub emulator cosmos"; known are check, export, import`},
		{[]string{"emulator", "--in-memory"}, "unknown flag: --in-memory"},
		{[]string{"check", "now"}, `unknown command "now" for "messagehub check"`},
		{[]string{"check", "--listen", "x"}, "unknown flag: --listen"},
		{[]string{"check", "--actor", "a b"}, `--actor: actor id: want only A-Z a-z 0-9 . _ -, got "a b"`},
		{[]string{"check", "--actor", "a", "--resume", "x"}, "--resume: a check of one actor is not resumed; remove it, or --actor"},
		{[]string{"check", "--url", "localhost", "--repair"}, `--url: want the address of a hub such as http://127.0.0.1:8080, got "localhost"`},
		{[]string{"check", "--url", url, "--cosmos-database", "x"}, "--cosmos-database: with --url the hub knows where its data is; remove one of the two"},
		{[]string{"demo", "--events", "-1"}, "--events, --backlog: want at least 0, and together at most 10,000,000"},
		{[]string{"version", "please"}, `unknown command "please" for "messagehub version"`},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			got := messagehub(t, "", tc.args...)
			require.Equal(t, 2, got.status)
			require.Empty(t, got.out)
			command := "messagehub " + tc.args[0]
			switch {
			case tc.args[0] == "obtain":
				command = "messagehub"
			case tc.args[0] == "queue" && tc.args[1] != "melt", slices.Contains(tc.args, "cosmos"):
				command += " " + tc.args[1]
			}
			require.Equal(t, "messagehub: "+tc.want+"\nmessagehub: see "+command+" --help\n", got.err)
		})
	}
}

func TestSend_ReportsAClosedPortImmediately(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	url := "http://" + l.Addr().String()
	for _, args := range [][]string{
		{"peek", "--actor", "a"}, {"dequeue", "--actor", "a", bundleID}, {"send", "-"},
	} {
		got := messagehub(t, event(1, ""), append(args, "--url", url)...)
		require.Equal(t, 1, got.status)
		require.Contains(t, got.err, "messagehub: no hub listens at "+url+"; start one with messagehub serve, or name another with --url")
	}
}

func TestCommands_DetectAServerThatIsNoHub(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	require.Equal(t,
		result{1, "", "messagehub: Not Found (404): The answer is no problem document; is this a hub? It begins \"404 page not found\\n\".\n"},
		messagehub(t, "", "peek", "--url", server.URL, "--actor", "a"))
}

func TestVersion_NamesTheProgramAndItsCompiler(t *testing.T) {
	require.Equal(t,
		result{0, fmt.Sprintf("messagehub dev (%s, %s/%s)\n", runtime.Version(), runtime.GOOS, runtime.GOARCH), ""},
		messagehub(t, "", "version"))
}

func TestHelp_ShowsEveryCommand(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}} {
		got := messagehub(t, "", args...)
		require.Equal(t, 0, got.status)
		for _, name := range []string{"serve", "send", "domain", "peek", "dequeue", "queue", "check", "provision", "demo", "version"} {
			require.Contains(t, got.out, "\n  "+name+" ")
		}
	}
	for _, flag := range []string{"--listen HOST:PORT", "--data FOLDER", "--in-memory ", "--insecure ", "--config FILE", "--cosmos-endpoint URL", `(default "127.0.0.1:8080")`} {
		require.Contains(t, messagehub(t, "", "serve", "--help").out, flag)
	}
}

func TestSend_NamesAFileThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	require.Equal(t, result{1, "", "messagehub: open " + missing + ": no such file or directory\n"}, messagehub(t, "", "send", missing))
	require.Equal(t, result{1, "", "messagehub: " + dir + " is a folder; name a file of events\n"}, messagehub(t, "", "send", dir))
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n \n"), 0o600))
	require.Equal(t, result{0, "0 accepted, 0 duplicates, 0 conflicts\n", ""}, messagehub(t, "", "send", empty))
}
