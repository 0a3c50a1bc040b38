package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// brokerHub starts an in-memory hub whose broker makes two attempts per job.
func brokerHub(t *testing.T) (url string) {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.BusListen, cfg.BlobListen, cfg.InMemory = "127.0.0.1:0", "", "", true
	cfg.ServiceBus.FIFO, cfg.ServiceBus.Plain = "", ""
	cfg.Data, cfg.Admin.Token = t.TempDir(), operatorToken
	cfg.Push.Allow, cfg.Push.InsecureHTTP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
	cfg.Broker.MaxRetry, cfg.Broker.RetryDelay = 1, 10*time.Millisecond
	n, err := node.Open(t.Context(), cfg, node.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return n.URL()
}

// brokerAt runs a subcommand of messagehub broker for the hub at url.
func brokerAt(t *testing.T, url string, args ...string) result {
	t.Helper()
	return messagehub(t, "", append(append([]string{"broker"}, args...), "--url", url)...)
}

// brokerOK runs a subcommand of messagehub broker that must succeed, and
// returns its standard output.
func brokerOK(t *testing.T, url string, args ...string) string {
	t.Helper()
	got := brokerAt(t, url, args...)
	require.Equal(t, 0, got.status, got.err)
	require.Empty(t, got.err)
	return got.out
}

// answeringReceiver starts a receiver that answers every call with status.
func answeringReceiver(t *testing.T, status *atomic.Int64) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(server.Close)
	return server.URL
}

// putPrices creates a channel, a producer and a consumer.
func putPrices(t *testing.T, hub, callback string) {
	t.Helper()
	brokerOK(t, hub, "put", "channel", "prices", "--token", "hush-c")
	brokerOK(t, hub, "put", "producer", "shop", "--token", "hush-p")
	brokerOK(t, hub, "put", "consumer", "prices", "billing", "--token", "hush-k", "--callback-url", callback)
}

var storedID = regexp.MustCompile(`^stored (m\d\.\d+)\n$`)

// broadcastPrice broadcasts a message and returns its id.
func broadcastPrice(t *testing.T, hub string, args ...string) (id string) {
	t.Helper()
	args = append([]string{"broadcast", "prices", "--producer", "shop", "--producer-token", "hush-p", "--channel-token", "hush-c"}, args...)
	out := brokerOK(t, hub, args...)
	require.Regexp(t, storedID, out)
	return storedID.FindStringSubmatch(out)[1]
}

// awaitJob waits until the consumer billing's job for a message has this
// status.
func awaitJob(t *testing.T, hub, message, status string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(brokerOK(t, hub, "message", "prices", message), "\nbilling   "+status+" ")
	}, patience, 5*time.Millisecond)
}

// The commands of the guide must work as printed there.
func TestBroker_ShowsANewcomerTheFirstDelivery(t *testing.T) {
	hub := brokerHub(t)
	called := make(chan []byte, 1)
	listener, stop := startListenTo(t, called, "--consumer-token", "secret-3", "--headers", "--json")
	got := messagehub(t, `broker:
  producers: [{id: me, token: secret-1}]
  channels: [{id: news, token: secret-2}]
  consumers: [{channel: news, id: here, callback-url: '`+listener+`', token: secret-3}]
`, "broker", "sync", "-", "--url", hub)
	require.Equal(t, result{0, "create           producer me\ncreate           channel news\n" +
		"create           consumer news/here  " + listener + "\n3 changes made\n", ""}, got)
	require.Regexp(t, storedID, brokerOK(t, hub, "broadcast", "news", "--producer", "me", "--producer-token", "secret-1", "--channel-token", "secret-2", "--text", "hello"))

	var call struct {
		Body    string
		Schemes []string
		Headers map[string]string
	}
	text := <-called
	require.NoError(t, json.Unmarshal(text, &call))
	require.Equal(t, "hello", call.Body)
	require.Equal(t, []string{"v1"}, call.Schemes)
	require.Equal(t, "news", call.Headers["x-broker-channel-id"])
	require.Equal(t, "0", call.Headers["x-broker-message-attempt"])
	require.NotContains(t, string(text), "secret-3")
	require.Contains(t, stop(), "1 call, 1 verified, 0 refused, 0 repeated\n")
}

func TestBrokerListen_RefusesTheCallsOfAnotherConsumer(t *testing.T) {
	hub := brokerHub(t)
	called := make(chan []byte, 10)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("another\n"), 0o600))
	listener, stop := startListenTo(t, called, "--consumer-token-file", file, "--headers")
	putPrices(t, hub, listener)
	id := broadcastPrice(t, hub, "--text", "x")
	text := string(<-called)
	require.Contains(t, text, "verified             NO: none of its signatures is valid")
	require.Contains(t, text, "x-broker-consumer-token ...\n")
	require.NotContains(t, text, "hush-k")
	awaitJob(t, hub, id, "Dead")
	require.Contains(t, stop(), "2 calls, 0 verified, 2 refused, 0 repeated\n")
}

func TestBrokerPut_CreatesAndChanges(t *testing.T) {
	hub := brokerHub(t)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("# of the shop\nhush-p\n"), 0o600))
	require.Equal(t, "there are no producers\n", brokerOK(t, hub, "list", "producers"))
	require.Equal(t, "created producer shop\n", brokerOK(t, hub, "put", "producer", "shop", "--token-file", file))
	require.Equal(t, "producer shop existed, and is up to date now\n", brokerOK(t, hub, "put", "producer", "shop", "--name", "The shop"))
	require.Equal(t, "created channel prices\n", brokerOK(t, hub, "put", "channel", "prices", "--token", "hush-c"))
	require.Equal(t, "created consumer prices/billing\n",
		brokerOK(t, hub, "put", "consumer", "prices", "billing", "--callback-url", "http://127.0.0.1:1/", "--token", "hush-k"))
	require.Regexp(t, `^PRODUCER  NAME      CHANGED\nshop      The shop  20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$`, brokerOK(t, hub, "list", "producers"))
	require.Regexp(t, `^CONSUMER  NAME     CHANGED +CALLS\nbilling   billing  20[-0-9T:]+Z  http://127.0.0.1:1/\n$`, brokerOK(t, hub, "list", "consumers", "prices", "--token", "hush-c"))

	var shown map[string][]map[string]any
	require.NoError(t, json.Unmarshal([]byte(brokerOK(t, hub, "list", "channels", "--json")), &shown))
	require.Equal(t, "prices", shown["channels"][0]["id"])
	require.JSONEq(t, `{"channels":[]}`, brokerOK(t, brokerHub(t), "list", "channels", "--json"))

	brokerOK(t, hub, "put", "channel", "other", "--token", "hush")
	got := brokerAt(t, hub, "list", "channels", "--limit", "1")
	require.Equal(t, 0, got.status)
	require.Contains(t, got.out, "other")
	require.Equal(t, "messagehub: the list is longer; --limit shows more of it\n", got.err)

	for _, refused := range []struct {
		args []string
		want string
	}{
		{[]string{"put", "producer", "new"}, "token: missing; the hub generates none, because it never shows tokens"},
		{[]string{"put", "consumer", "unknown", "x", "--callback-url", "http://127.0.0.1:1/", "--token", "x"}, "there is no channel unknown"},
		{[]string{"put", "consumer", "prices", "x", "--callback-url", "http://10.0.0.1/", "--token", "x"}, "callbackUrl: "},
	} {
		got := brokerAt(t, hub, refused.args...)
		require.Equal(t, 1, got.status)
		require.Contains(t, got.err, refused.want)
	}
}

func TestBrokerMessages_ShowTheirJobs(t *testing.T) {
	hub := brokerHub(t)
	var status atomic.Int64
	status.Store(http.StatusNoContent)
	putPrices(t, hub, answeringReceiver(t, &status))
	require.Equal(t, "channel prices has no such messages\n", brokerOK(t, hub, "messages", "prices"))
	file := filepath.Join(t.TempDir(), "price.csv")
	require.NoError(t, os.WriteFile(file, []byte("a;b\n"), 0o600))
	id := broadcastPrice(t, hub, file, "--id", "offer-1", "--priority", "7", "--content-type", "text/csv", "--header", "X-Trace: t-1")
	require.Equal(t, id, broadcastPrice(t, hub, file, "--id", "offer-1", "--priority", "7", "--content-type", "text/csv", "--header", "X-Trace: t-1"))
	awaitJob(t, hub, id, "Delivered")
	require.Regexp(t, `^MESSAGE  PRIORITY  STATUS            RECEIVED +PRODUCER  ID OF THE PRODUCER  TYPE\n`+
		regexp.QuoteMeta(id)+`     7         Out-for-delivery  20[-0-9T:]+Z  shop      offer-1             text/csv\n$`, brokerOK(t, hub, "messages", "prices", "--token", "hush-c"))
	require.Equal(t, "channel prices has no such messages\n", brokerOK(t, hub, "messages", "prices", "--since", "-1h"))
	out := brokerOK(t, hub, "message", "prices", "offer-1")
	for _, want := range []string{
		"message             " + id + "\n", "channel             prices\n", "status              Out-for-delivery\n", "priority            7\n",
		"producer            shop\n", "id of the producer  offer-1\n", "type                text/csv\n", "header              X-Trace: t-1\n",
		"payload             4 bytes; --payload prints it\n", "CONSUMER  STATUS     ATTEMPTS  DUE  LAST ANSWER\nbilling   Delivered  0         -    -\n",
	} {
		require.Contains(t, out, want)
	}
	require.Equal(t, "a;b\n", brokerOK(t, hub, "message", "prices", id, "--payload"))
	require.Contains(t, brokerOK(t, hub, "message", "prices", id, "--json"), `"payload":"a;b\n"`)
	require.Contains(t, brokerOK(t, hub, "messages", "prices", "--json"), `{"messages":[{"id":"`+id+`"`)

	got := brokerAt(t, hub, "broadcast", "prices", "--producer", "shop", "--producer-token", "hush-p", "--channel-token", "hush-c", "--id", "offer-1", "--text", "other")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "One id is used for different contents (409)")
	got = brokerAt(t, hub, "broadcast", "prices", "--producer", "shop", "--producer-token", "hush", "--channel-token", "hush-c", "--text", "other")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "The credentials are wrong (403)")
	require.Contains(t, brokerAt(t, hub, "message", "prices", "m0.99").err, "there is no message m0.99")
}

func TestBrokerDeadLetters_AreListedAndRetriggered(t *testing.T) {
	hub := brokerHub(t)
	var status atomic.Int64
	status.Store(http.StatusServiceUnavailable)
	putPrices(t, hub, answeringReceiver(t, &status))
	require.Equal(t, "billing of prices has no dead letters\n", brokerOK(t, hub, "dlq", "prices", "billing"))
	first, second := broadcastPrice(t, hub, "--text", "1"), broadcastPrice(t, hub, "--text", "2")
	awaitJob(t, hub, first, "Dead")
	awaitJob(t, hub, second, "Dead")
	require.Regexp(t, `^MESSAGE  ATTEMPTS  LAST ATTEMPT          LAST ANSWER\n`+regexp.QuoteMeta(first)+` +2 +20[-0-9T:]+Z  .*503.*\n`+
		regexp.QuoteMeta(second)+` `, brokerOK(t, hub, "dlq", "prices", "billing", "--token", "hush-k"))
	require.Contains(t, brokerOK(t, hub, "dlq", "prices", "billing", "--json"), `"status":"Dead","attempts":2`)

	status.Store(http.StatusNoContent)
	require.Equal(t, "re-triggered the job of billing for "+first+"\n", brokerOK(t, hub, "retrigger", "prices", first, "billing", "--token", "hush-k"))
	require.Equal(t, "re-triggered all dead jobs of "+second+"\n", brokerOK(t, hub, "retrigger", "prices", second))
	awaitJob(t, hub, first, "Delivered")
	awaitJob(t, hub, second, "Delivered")
	got := brokerAt(t, hub, "retrigger", "prices", second)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "there is nothing to re-trigger")
	require.Equal(t, 1, brokerAt(t, hub, "retrigger", "prices", first, "billing", "--token", "hush").status)
}

func TestBrokerPeek_RepeatsABundleUntilItIsDequeued(t *testing.T) {
	hub := brokerHub(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	putPrices(t, hub, server.URL)
	require.Equal(t, result{3, "", "no message waits for billing of prices\n"}, brokerAt(t, hub, "peek", "prices", "billing"))
	id := broadcastPrice(t, hub, "--text", "hello", "--content-type", "text/plain")
	awaitJob(t, hub, id, "Retry-Delivery")

	out := brokerOK(t, hub, "peek", "prices", "billing", "--token", "hush-k")
	require.Regexp(t, `^bundle \S+ of 1 message\n\nMESSAGE  PRIORITY  RECEIVED +TYPE        BYTES\n`+regexp.QuoteMeta(id)+`     0         20[-0-9T:]+Z  text/plain  5\n\n`+
		`confirm them with: messagehub broker dequeue prices billing \S+\n$`, out)
	require.Equal(t, out, brokerOK(t, hub, "peek", "prices", "billing"), "it is the same until it is dequeued")
	require.Contains(t, brokerOK(t, hub, "peek", "prices", "billing", "--json"), `"payload":"hello"`)
	bundle := strings.Fields(out)[1]
	require.Equal(t, "dequeued "+bundle+"\n", brokerOK(t, hub, "dequeue", "prices", "billing", bundle, "--token", "hush-k"))
	require.Equal(t, "dequeued "+bundle+"\n", brokerOK(t, hub, "dequeue", "prices", "billing", bundle), "it may be repeated")
	require.Equal(t, 3, brokerAt(t, hub, "peek", "prices", "billing").status)
	awaitJob(t, hub, id, "Delivered")
	require.Contains(t, brokerAt(t, hub, "dequeue", "prices", "billing", "unknown").err, "has no bundle unknown")
}

func TestBroker_RefusesAWrongCommandLine(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	const creds = "--producer shop --producer-token p --channel-token c"
	for line, want := range map[string]string{
		"sync":                                       "want FILE",
		"put channel":                                "want CHANNEL",
		"put channel a b":                            "want CHANNEL",
		"put channel a/b":                            `channel id: want only A-Z a-z 0-9 . _ -, got "a/b"`,
		"put producer a%":                            `producer id: want only A-Z a-z 0-9 . _ -, got "a%"`,
		"put channel a --token hu|sh":                "--token: want printable ASCII without blanks",
		"put channel a --token x --token-file y":     "--token and --token-file: want one of them",
		"put channel a --token-file " + empty:        "--token-file: " + empty + " has no secret",
		"put consumer a":                             "want CHANNEL and CONSUMER",
		"put consumer a b":                           "--callback-url is missing; say what the hub is to call",
		"put consumer a b --callback-url /hook":      `--callback-url: want http or https, got "/hook"`,
		"put consumer a b! --callback-url http://x/": `consumer id: want only A-Z a-z 0-9 . _ -, got "b!"`,

		"list":                                          "want LIST and perhaps CHANNEL",
		"list people":                                   `want producers, channels or consumers, got "people"`,
		"list consumers":                                "want the CHANNEL of the consumers",
		"list channels x":                               "only the list consumers takes a CHANNEL",
		"list channels --limit 0":                       "--limit: want at least 1, got 0",
		"broadcast":                                     "want CHANNEL and perhaps FILE",
		"broadcast a " + creds:                          "want a FILE, - for stdin, or --text",
		"broadcast a f --text x " + creds:               "want a FILE, - for stdin, or --text",
		"broadcast a --text x":                          "--producer is missing; say who you are",
		"broadcast a --text x --producer !":             `--producer: producer id: want only A-Z a-z 0-9 . _ -, got "!"`,
		"broadcast a --text x --producer a":             "want --producer-token-file and --channel-token-file, or the tokens as flags",
		"broadcast a --text x --priority 10 " + creds:   "priority: want 0 to 9, got 10",
		"broadcast a --text x --header X " + creds:      `--header: want NAME: VALUE, got "X"`,
		"broadcast a --text x --header Host:x " + creds: "--header: Host: the hub sets it",

		"broadcast a --text x --header A:1 --header A:2 " + creds: "--header: A occurs twice",

		"messages":                     "want CHANNEL",
		"messages a --since soon":      `--since: want a time such as 2030-01-31T12:00:00Z or a duration such as 24h, got "soon"`,
		"messages a --limit -1":        "--limit: want at least 1, got -1",
		"message a":                    "want CHANNEL and MESSAGE",
		"message a ..":                 `MESSAGE: want the id of a message, got ".."`,
		"message a b --payload --json": "--payload and --json: want one of them",
		"dlq a":                        "want CHANNEL and CONSUMER",
		"dlq a b --limit 0":            "--limit: want at least 1, got 0",
		"retrigger a":                  "want CHANNEL and MESSAGE and perhaps CONSUMER",
		"retrigger a m0.1 --token x":   "--token: name the CONSUMER whose token it is",
		"retrigger a m0.1 b/c":         `consumer id: want only A-Z a-z 0-9 . _ -, got "b/c"`,
		"peek a":                       "want CHANNEL and CONSUMER",
		"peek a b --size 0":            "--size: want 1 to 32, got 0",
		"dequeue a b":                  "want CHANNEL and CONSUMER and BUNDLE",
		"dequeue a b .":                `BUNDLE: want the id that peek printed, got "."`,
		"dlq a b --url x":              `--url: want the address of a hub such as http://127.0.0.1:8080, got "x"`,
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "|", "\x7f")
		}
		got := messagehub(t, "", append([]string{"broker"}, args...)...)
		command := "broker " + args[0]
		if args[0] == "put" {
			command += " " + args[1]
		}
		require.Equal(t, result{2, "", "messagehub: " + want + "\nmessagehub: see messagehub " + command + " --help\n"}, got, line)
	}
}

func TestBroker_NamesTheMissingToken(t *testing.T) {
	t.Chdir(t.TempDir())
	got := runWith(t, nil, "broker", "list", "channels")
	require.Equal(t, result{2, "", "messagehub: list: no token is given; as an operator, set MESSAGEHUB_ADMIN_TOKEN or MESSAGEHUB_TOKEN, or name the data folder of the hub with --data\n" +
		"messagehub: see messagehub broker list --help\n"}, got)

	hub := brokerHub(t)
	got = runWith(t, []string{tokenVariable + "=another-token-than-that"}, "broker", "list", "channels", "--url", hub)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "The credentials are wrong (403)")
	require.NotContains(t, got.err, "another-token")
	require.Equal(t, 0, runWith(t, nil, "broker", "broadcast", "--help").status)
}

func TestBroker_ReportsThatNoHubListens(t *testing.T) {
	got := brokerAt(t, "http://127.0.0.1:1", "dlq", "prices", "billing")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "messagehub: no hub listens at http://127.0.0.1:1; start one with messagehub serve, or name another with --url")
}

func TestBroker_WarnsBeforeATokenCanBeRead(t *testing.T) {
	var errs strings.Builder
	p := &process{err: &errs}
	b := &brokerCommand{p: p, url: "http://hub.example"}
	b.acceptConsumerToken()
	b.own.text = "hush"
	require.NoError(t, b.connectClients("dlq", config.Inputs{}))
	require.Contains(t, errs.String(), "warning: a token is sent to http://hub.example over plain HTTP")
	require.NotContains(t, errs.String(), "hush")
}

func TestBrokerBroadcast_LimitsTheSizeOfItsInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(file, make([]byte, 1<<20+1), 0o600))
	args := []string{"broker", "broadcast", "prices", "--producer", "shop", "--producer-token", "p", "--channel-token", "c"}
	require.Equal(t, result{1, "", "messagehub: want a message of at most 1048576 bytes\n"}, messagehub(t, "", append(args, file)...))
	require.Contains(t, messagehub(t, "", append(args, file+"x")...).err, "no such file")
	hub := brokerHub(t)
	putPrices(t, hub, "http://127.0.0.1:1/")
	args = []string{"broker", "broadcast", "prices", "-", "--producer", "shop", "--producer-token", "hush-p", "--channel-token", "hush-c", "--url", hub}
	got := messagehub(t, "from stdin", args...)
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, "from stdin", brokerOK(t, hub, "message", "prices", strings.Fields(got.out)[1], "--payload"))
}
