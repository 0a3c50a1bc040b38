package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// load loads a configuration from the text of a file, environment variables and
// flags. If yaml is "", there is no file.
func load(t *testing.T, yaml string, environ []string, args ...string) (config.Config, error) {
	t.Helper()
	in := config.Inputs{Environ: environ, Flags: pflag.NewFlagSet("serve", pflag.ContinueOnError)}
	config.AddFlags(in.Flags)
	require.NoError(t, in.Flags.Parse(args))
	if yaml != "" {
		in.File = write(t, yaml)
	}
	return config.Load(in)
}

// write creates a file hub.yaml and makes its folder the working directory, so
// that errors contain only the file's name.
func write(t *testing.T, yaml string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("hub.yaml", []byte(yaml), 0o600))
	return "hub.yaml"
}

func TestDefaultIsValidAndWhatLoadReturnsWithoutLayers(t *testing.T) {
	def := config.Default()
	require.NoError(t, def.Validate())
	require.False(t, def.HasOperatorListener(), "programs that open a node have one listener")
	def.AdminListen = "127.0.0.1:8081"
	got, err := load(t, "", []string{"HOME=/root", "MESSAGEHUBX=1"})
	require.NoError(t, err)
	require.Equal(t, def.String(), got.String())
	require.True(t, got.Embedded())
}

func TestOperatorListener_IsTheDefault(t *testing.T) {
	for args, want := range map[string]string{
		"":                        "127.0.0.1:8081",
		"--listen 127.0.0.1:9000": "127.0.0.1:8081",
		"--listen 127.0.0.1:0":    "", // allowed, because the default 127.0.0.1:0 is the same as listen
		"--listen [::1]:0":        "127.0.0.1:0",
		"--listen 127.0.0.1:0 --admin-listen 127.0.0.1:9001":    "127.0.0.1:9001",
		"--listen 127.0.0.1:9000 --admin-listen 127.0.0.1:9000": "",
		"--admin-listen=":         "",
		"--listen 127.0.0.1:8081": "",
	} {
		c, err := load(t, "", nil, strings.Fields(args)...)
		require.NoError(t, err, args)
		require.Equal(t, want != "", c.HasOperatorListener(), args)
		if want != "" {
			require.Equal(t, want, c.AdminListen, args)
		}
	}
}

func TestEachLayerOverridesTheLowerLayers(t *testing.T) {
	const file = "listen: 127.0.0.1:1001\nlog:\n  level: warn\n  format: json\ndata: from-file\n"
	environ := []string{"MESSAGEHUB_LISTEN=127.0.0.1:1002", "MESSAGEHUB_LOG_LEVEL=error"}
	got, err := load(t, file, environ, "--listen", "127.0.0.1:1003")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:1003", got.Listen, "flag over environment over file")
	require.Equal(t, slog.LevelError, got.Log.Level, "environment over file")
	require.Equal(t, "json", got.Log.Format, "file over default")
	for _, line := range []string{
		"listen = 127.0.0.1:1003 (--listen)\n",
		"data = from-file (hub.yaml line 5)\n",
		"log.level = error (MESSAGEHUB_LOG_LEVEL)\n",
		"limits.payload = 1MB (the default)\n",
	} {
		require.Contains(t, got.String(), line)
	}
}

func TestEveryKeyCanBeSetInTheFileAndInTheEnvironment(t *testing.T) {
	for _, tc := range []struct{ yaml, variable, want string }{
		{"listen: '[::1]:0'", "MESSAGEHUB_LISTEN=[::1]:0", "listen = [::1]:0"},
		{"data: /var/lib/hub", "MESSAGEHUB_DATA=/var/lib/hub", "data = /var/lib/hub"},
		{"in-memory: true", "MESSAGEHUB_IN_MEMORY=1", "in-memory = true"},
		{"insecure: true", "MESSAGEHUB_INSECURE=true", "insecure = true"},
		{"cosmos: {endpoint: 'https://a.example/'}", "MESSAGEHUB_COSMOS_ENDPOINT=https://a.example/", "cosmos.endpoint = https://a.example/"},
		{"cosmos: {key: c2VjcmV0}", "MESSAGEHUB_COSMOS_KEY=c2VjcmV0", "cosmos.key = [redacted]"},
		{"cosmos: {database: other}", "MESSAGEHUB_COSMOS_DATABASE=other", "cosmos.database = other"},
		{"cosmos: {consistency: session}", "MESSAGEHUB_COSMOS_CONSISTENCY=session", "cosmos.consistency = Session"},
		{"cosmos: {id-memory: 16MB}", "MESSAGEHUB_COSMOS_ID_MEMORY=16MB", "cosmos.id-memory = 16MB"},
		{"cosmos: {sweep-units: 200}", "MESSAGEHUB_COSMOS_SWEEP_UNITS=200", "cosmos.sweep-units = 200"},
		{"cosmos: {tail-events: 16}", "MESSAGEHUB_COSMOS_TAIL_EVENTS=16", "cosmos.tail-events = 16"},
		{"survey: {units: 10}", "MESSAGEHUB_SURVEY_UNITS=10", "survey.units = 10"},
		{"console: {client-id: hub}", "MESSAGEHUB_CONSOLE_CLIENT_ID=hub", "console.client-id = hub"},
		{"console: {client-secret: hush}", "MESSAGEHUB_CONSOLE_CLIENT_SECRET=hush", "console.client-secret = [redacted]"},
		{"console: {session-key: a-secret-of-26-characters-}", "MESSAGEHUB_CONSOLE_SESSION_KEY=a-secret-of-26-characters-", "console.session-key = [redacted]"},
		{"servicebus: {namespace: a.example}", "MESSAGEHUB_SERVICEBUS_NAMESPACE=a.example", "servicebus.namespace = a.example"},
		{"servicebus: {connection: 'Endpoint=sb://a/'}", "MESSAGEHUB_SERVICEBUS_CONNECTION=Endpoint=sb://a/", "servicebus.connection = [redacted]"},
		{"servicebus: {fifo-queue: q}", "MESSAGEHUB_SERVICEBUS_FIFO_QUEUE=q", "servicebus.fifo-queue = q"},
		{"servicebus: {plain-queue: None}", "MESSAGEHUB_SERVICEBUS_PLAIN_QUEUE=none", "servicebus.plain-queue = none"},
		{"servicebus: {sessions: 8}", "MESSAGEHUB_SERVICEBUS_SESSIONS=8", "servicebus.sessions = 8"},
		{"bus-listen: ''", "MESSAGEHUB_BUS_LISTEN=", "bus-listen = "},
		{"blob: {endpoint: 'https://a.example/'}", "MESSAGEHUB_BLOB_ENDPOINT=https://a.example/", "blob.endpoint = https://a.example/"},
		{"blob: {endpoint: 'https://a.example/', key: c2VjcmV0}", "MESSAGEHUB_BLOB_KEY=c2VjcmV0", "blob.key = [redacted]"},
		{"blob: {container: hub}", "MESSAGEHUB_BLOB_CONTAINER=hub", "blob.container = hub"},
		{"blob-listen: '127.0.0.1:0'", "MESSAGEHUB_BLOB_LISTEN=127.0.0.1:0", "blob-listen = 127.0.0.1:0"},
		{"domains: [{name: Charges, content: request, queue: q}]", "MESSAGEHUB_DOMAINS=[{name: Charges, content: request, queue: q}]", "domains = Charges (request)"},
		{"broker: {producers: [{id: shop}, {id: mill}]}", "MESSAGEHUB_BROKER_PRODUCERS=[{id: shop}, {id: mill}]", "broker.producers = shop, mill"},
		{"broker: {channels: [{id: prices, token-env: T}]}", "MESSAGEHUB_BROKER_CHANNELS=[{id: prices, token-env: T}]", "broker.channels = prices"},
		{
			"broker: {consumers: [{channel: prices, id: billing, callback-url: 'https://example.org/'}]}",
			"MESSAGEHUB_BROKER_CONSUMERS=[{channel: prices, id: billing, callback-url: 'https://example.org/'}]", "broker.consumers = prices/billing",
		},
		{"limits: {content: 100MB}", "MESSAGEHUB_LIMITS_CONTENT=100MB", "limits.content = 100MB"},
		{"admin: {token: c2VjcmV0LWVub3VnaA}", "MESSAGEHUB_ADMIN_TOKEN=c2VjcmV0LWVub3VnaA", "admin.token = [redacted]"},
		{"retention: 30D", "MESSAGEHUB_RETENTION=30d", "retention = 30d"},
		{"retention: 0", "MESSAGEHUB_RETENTION=forever", "retention = forever"},
		{"domains: [{name: Billing}]", "MESSAGEHUB_DOMAINS=[{name: Billing}]", "domains = Billing"},
		{"ordering: Recipient", "MESSAGEHUB_ORDERING=recipient", "ordering = recipient"},
		{"log: {level: DEBUG}", "MESSAGEHUB_LOG_LEVEL=DEBUG", "log.level = debug"},
		{"log: {format: text}", "MESSAGEHUB_LOG_FORMAT=text", "log.format = text"},
		{"limits: {request-body: 64 MB}", "MESSAGEHUB_LIMITS_REQUEST_BODY=64MB", "limits.request-body = 64MB"},
		{"limits: {payload: 1000}", "MESSAGEHUB_LIMITS_PAYLOAD=1000", "limits.payload = 1000"},
		{"limits: {bodies: 64MB}", "MESSAGEHUB_LIMITS_BODIES=64MB", "limits.bodies = 64MB"},
		{"limits: {connections: auto}", "MESSAGEHUB_LIMITS_CONNECTIONS=auto", "limits.connections = auto"},
		{"limits: {connections-per-address: 9}", "MESSAGEHUB_LIMITS_CONNECTIONS_PER_ADDRESS=9", "limits.connections-per-address = 9"},
		{"limits: {payload-depth: 8}", "MESSAGEHUB_LIMITS_PAYLOAD_DEPTH=8", "limits.payload-depth = 8"},
		{"limits: {payload-number: 20}", "MESSAGEHUB_LIMITS_PAYLOAD_NUMBER=20", "limits.payload-number = 20"},
		{"limits: {events: 5}", "MESSAGEHUB_LIMITS_EVENTS=5", "limits.events = 5"},
		{"limits: {waiting: 50}", "MESSAGEHUB_LIMITS_WAITING=50", "limits.waiting = 50"},
		{"limits: {bus-connections: 200}", "MESSAGEHUB_LIMITS_BUS_CONNECTIONS=200", "limits.bus-connections = 200"},
		{"limits: {bus-buffer: 1GB}", "MESSAGEHUB_LIMITS_BUS_BUFFER=1GB", "limits.bus-buffer = 1GB"},
		{"limits: {bus-token-timeout: 30s}", "MESSAGEHUB_LIMITS_BUS_TOKEN_TIMEOUT=30s", "limits.bus-token-timeout = 30s"},
		{"push: {workers: 8}", "MESSAGEHUB_PUSH_WORKERS=8", "push.workers = 8"},
		{"push: {concurrency: 4}", "MESSAGEHUB_PUSH_CONCURRENCY=4", "push.concurrency = 4"},
		{"push: {timeout: 10s}", "MESSAGEHUB_PUSH_TIMEOUT=10s", "push.timeout = 10s"},
		{"push: {delays: 0 60 1.5 10m 36h 100ms}", "MESSAGEHUB_PUSH_DELAYS=0,60s,1500ms,10m,36h,0.1", "push.delays = 0s 1m 1.5s 10m 36h 100ms"},
		{"push: {attempts: 3}", "MESSAGEHUB_PUSH_ATTEMPTS=3", "push.attempts = 3"},
		{"push: {allow: 10.0.0.0/8 fd00::/8}", "MESSAGEHUB_PUSH_ALLOW=10.0.0.0/8, fd00::/8", "push.allow = 10.0.0.0/8 fd00::/8"},
		{"push: {insecure-http: true}", "MESSAGEHUB_PUSH_INSECURE_HTTP=true", "push.insecure-http = true"},
		{"push: {secret-grace: 36h}", "MESSAGEHUB_PUSH_SECRET_GRACE=36h", "push.secret-grace = 36h"},
		{"push: {secret-grace: 0s}", "MESSAGEHUB_PUSH_SECRET_GRACE=0d", "push.secret-grace = 0d"},
		{"push: {secret-key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}", "MESSAGEHUB_PUSH_SECRET_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "push.secret-key = [redacted]"},
		{"drain-delay: 5s", "MESSAGEHUB_DRAIN_DELAY=5000ms", "drain-delay = 5s"},
		{"limits: {free-disk: 1GB}", "MESSAGEHUB_LIMITS_FREE_DISK=1GB", "limits.free-disk = 1GB"},
	} {
		t.Run(tc.variable, func(t *testing.T) {
			var endpoint []string // additional settings that make tc.key valid
			if strings.Contains(tc.yaml, "cosmos") && !strings.Contains(tc.yaml, "endpoint") {
				endpoint = []string{"MESSAGEHUB_COSMOS_ENDPOINT=https://a.example/"}
			}
			if strings.Contains(tc.yaml, "blob: {endpoint") && strings.Contains(tc.yaml, "key") {
				endpoint = []string{"MESSAGEHUB_BLOB_ENDPOINT=https://a.example/"}
			}
			if strings.Contains(tc.yaml, "console: {client") {
				endpoint = []string{"MESSAGEHUB_OIDC_ISSUER=https://issuer.example", "MESSAGEHUB_OIDC_AUDIENCE=hub"}
			}
			if strings.Contains(tc.yaml, "console: {client-secret") {
				endpoint = append(endpoint, "MESSAGEHUB_CONSOLE_CLIENT_ID=hub")
			}
			byFile, err := load(t, tc.yaml, endpoint)
			require.NoError(t, err)
			require.Contains(t, byFile.String(), tc.want+" (hub.yaml line 1)\n")
			byEnvironment, err := load(t, "", append(endpoint, tc.variable))
			require.NoError(t, err)
			name, _, _ := strings.Cut(tc.variable, "=")
			require.Contains(t, byEnvironment.String(), tc.want+" ("+name+")\n")
		})
	}
}

func TestLoad_NamesThePlaceAndTheRemedyOfAFault(t *testing.T) {
	for _, tc := range []struct {
		name, yaml string
		environ    []string
		args       []string
		want       string // expected text of the whole error
	}{
		{name: "a key with a slip", yaml: "lisen: x", want: "lisen (hub.yaml line 1): no such key; did you mean listen?"},
		{name: "a key of a section with a slip", yaml: "log:\n  lvel: info", want: "log.lvel (hub.yaml line 2): no such key; did you mean log.level?"},
		{name: "a drain delay that is too long", yaml: "drain-delay: 6m", want: `drain-delay = "6m" (hub.yaml line 1): want a time from 0s to 5m0s, such as 5s`},
		{name: "a key like no other", yaml: "limits: {zzzzzzzzzzzzzzzzzzzzzzz: 1}", want: "limits.zzzzzzzzzzzzzzzzzzzzzzz (hub.yaml line 1): no such key; known are limits.answers, limits.answers-per-actor, limits.bodies, limits.bodies-per-address, limits.bus-buffer, limits.bus-connections, limits.bus-token-timeout, limits.connections, limits.connections-per-address, limits.content, limits.events, limits.events-per-second, limits.free-disk, limits.min-rate, limits.payload, limits.payload-depth, limits.payload-number, limits.request-body, limits.requests, limits.trusted-proxies, limits.waiting"},
		{name: "a variable with a slip", environ: []string{"MESSAGEHUB_LISTNE=x"}, want: "MESSAGEHUB_LISTNE (in the environment): no such key; did you mean MESSAGEHUB_LISTEN?"},
		{name: "a key twice", yaml: "data: a\ndata: b", want: "data (hub.yaml line 2): it stands in line 1 already; keep one"},
		{name: "a key without a value", yaml: "data:", want: "data (hub.yaml line 1): want one value"},
		{name: "a list for a value", yaml: "data: [a]", want: "data (hub.yaml line 1): want one value, not a list; if the setting has several values, write them as one text, with blanks between them"},
		{name: "no keys at all", yaml: "hello", want: "hub.yaml line 1: want keys with values, such as listen: 127.0.0.1:8080"},
		{name: "a second document", yaml: "data: a\n---\ndata: b", want: "hub.yaml: a second YAML document follows; keep one"},
		{name: "no YAML", yaml: "data: [", want: "hub.yaml: yaml: line 1: did not find expected node content; messagehub help configuration has an example"},
		{name: "an empty variable", environ: []string{"MESSAGEHUB_DATA="}, want: `data = "" (MESSAGEHUB_DATA): want a text, got nothing; leave the key out to get the default`},
		{name: "no truth", environ: []string{"MESSAGEHUB_IN_MEMORY=maybe"}, want: `in-memory = "maybe" (MESSAGEHUB_IN_MEMORY): want true or false`},
		{name: "no level", args: []string{"--log-level", "loud"}, want: `log.level = "loud" (--log-level): want debug, info, warn or error`},
		{name: "no ordering", yaml: "ordering: fifo", want: `ordering = "fifo" (hub.yaml line 1): want cabinet or recipient`},
		{name: "a retention too short to be meant", yaml: "retention: 59s", want: `retention = "59s" (hub.yaml line 1): want a time of 1m or more, such as 36h or 7d, up to 36500d, or forever`},
		{name: "a retention in the past", args: []string{"--retention", "-7d"}, want: `retention = "-7d" (--retention): want a time of 1m or more, such as 36h or 7d, up to 36500d, or forever`},
		{name: "a retention without end", environ: []string{"MESSAGEHUB_RETENTION=36501d"}, want: `retention = "36501d" (MESSAGEHUB_RETENTION): want a time of 1m or more, such as 36h or 7d, up to 36500d, or forever`},
		{name: "a retention without a unit", yaml: "retention: 7", want: `retention = "7" (hub.yaml line 1): want a time of 1m or more, such as 36h or 7d, up to 36500d, or forever`},
		{name: "a token that is soon guessed", environ: []string{"MESSAGEHUB_ADMIN_TOKEN=hub"}, want: `admin.token = "[redacted]" (MESSAGEHUB_ADMIN_TOKEN): want 16 to 200 visible ASCII characters without blanks, such as openssl rand -hex 32 prints`},
		{name: "a token that no header carries", environ: []string{"MESSAGEHUB_ADMIN_TOKEN=a token of four words"}, want: `admin.token = "[redacted]" (MESSAGEHUB_ADMIN_TOKEN): want 16 to 200 visible ASCII characters without blanks, such as openssl rand -hex 32 prints`},
		{name: "no token", environ: []string{"MESSAGEHUB_ADMIN_TOKEN="}, want: "admin.token = [redacted] (MESSAGEHUB_ADMIN_TOKEN): want a secret, got nothing; leave it out, and the hub makes one"},
		{name: "too few connections for the hub", yaml: "limits: {bus-connections: 31}", want: `limits.bus-connections = "31" (hub.yaml line 1): want at least 32; the hub needs a quarter of them for itself`},
		{name: "no time for a token", yaml: "limits: {bus-token-timeout: 10}", want: `limits.bus-token-timeout = "10" (hub.yaml line 1): want a time from 1s to 1h0m0s, such as 10s`},
		{name: "no size", yaml: "limits: {payload: lots}", want: `limits.payload = "lots" (hub.yaml line 1): want a size such as 512KB, 32MB or 1048576, up to 1024GB`},
		{name: "no room for one body", yaml: "limits: {bodies: 1MB}", want: `limits.bodies = "1MB" (hub.yaml line 1): a request may have limits.request-body = 32MB; raise this, or lower that`},
		{name: "a share that is too small", yaml: "limits: {bodies-per-address: 1MB}", want: `limits.bodies-per-address = "1MB" (hub.yaml line 1): a request may have limits.request-body = 32MB; raise this, or lower that`},
		{name: "a share of answers that is too large", yaml: "limits: {answers-per-actor: 1GB}", want: `limits.answers-per-actor = "1GB" (hub.yaml line 1): all actors together have limits.answers = 72MB; raise that, or lower this`},
		{name: "a share of connections that is too large", yaml: "limits: {connections: 5, connections-per-address: 6}", want: `limits.connections-per-address = "6" (hub.yaml line 1): all addresses together have limits.connections = 5; raise that, or lower this`},
		{name: "neither a number nor auto", yaml: "limits: {connections: some}", want: `limits.connections = "some" (hub.yaml line 1): want a whole number of at least 1, or auto`},
		{name: "payloads deeper than parsers read", yaml: "limits: {payload-depth: 999}", want: `limits.payload-depth = "999" (hub.yaml line 1): want at most 998; common JSON parsers refuse deeper bundles`},
		{name: "numbers longer than parsers read", yaml: "limits: {payload-number: 999}", want: `limits.payload-number = "999" (hub.yaml line 1): want at most 998; common JSON parsers refuse longer numbers`},
		{name: "no number", yaml: "limits: {events: 0}", want: `limits.events = "0" (hub.yaml line 1): want a whole number of at least 1`},
		{name: "a payload that fits no request", yaml: "limits: {payload: 2GB}", want: `limits.payload = "2GB" (hub.yaml line 1): a request has at most limits.request-body = 32MB; raise that, or lower this`},

		{name: "an address without a port", args: []string{"--listen", "localhost"}, want: `listen = "localhost" (--listen): want HOST:PORT, such as 127.0.0.1:8080`},
		{name: "a port beyond the last", args: []string{"--listen", "localhost:65536"}, want: `listen = "localhost:65536" (--listen): want a port from 0 to 65535, got "65536"`},
		{name: "every address", args: []string{"--listen", ":8080"}, want: `listen = ":8080" (--listen): actors are not authenticated, so every client that reaches this address may peek and dequeue for any actor; use 127.0.0.1:8080, or give --insecure if every client that reaches it is trusted`},
		{name: "memory and a folder", args: []string{"--in-memory", "--data", "x"}, want: `data = "x" (--data): in-memory says that nothing is to be kept; remove one of the two`},

		{name: "a key to nowhere", environ: []string{"MESSAGEHUB_COSMOS_KEY=c2VjcmV0"}, want: `cosmos.key = "[redacted]" (MESSAGEHUB_COSMOS_KEY): there is no cosmos.endpoint to use it with; add that, or remove this`},
		{name: "no URL", args: []string{"--cosmos-endpoint", "a.example"}, want: `cosmos.endpoint = "a.example" (--cosmos-endpoint): want a URL such as https://ACCOUNT.documents.azure.com:443/`},
		{name: "a connection string", args: []string{"--cosmos-endpoint", "https://a.example/?key=c"}, want: `cosmos.endpoint = "https://a.example/?key=c" (--cosmos-endpoint): want the address of the account alone, such as https://ACCOUNT.documents.azure.com:443/; a key goes to MESSAGEHUB_COSMOS_KEY`},
		{name: "http across the network", args: []string{"--cosmos-endpoint", "http://a.example/"}, want: `cosmos.endpoint = "http://a.example/" (--cosmos-endpoint): http shows everything to everyone on the way; use https`},
		{name: "an emulator without its key", args: []string{"--cosmos-endpoint", "http://localhost:8081/"}, want: `cosmos.endpoint = "http://localhost:8081/" (--cosmos-endpoint): an emulator over http needs its key; set MESSAGEHUB_COSMOS_KEY`},
		{name: "memory and an account", args: []string{"--cosmos-endpoint", "https://a.example/", "--in-memory"}, want: `in-memory = "true" (--in-memory): events would outlive their payloads, because cosmos.endpoint keeps the events; remove one of the two`},
		{name: "no level of consistency", args: []string{"--cosmos-consistency", "good"}, want: `cosmos.consistency = "good" (--cosmos-consistency): want Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual`},

		{name: "a namespace that is no host", environ: []string{"MESSAGEHUB_SERVICEBUS_NAMESPACE=x"}, want: `servicebus.namespace = "x" (MESSAGEHUB_SERVICEBUS_NAMESPACE): want the host name alone, such as NAME.servicebus.windows.net`},
		{name: "two buses", environ: []string{"MESSAGEHUB_SERVICEBUS_NAMESPACE=x.example", "MESSAGEHUB_SERVICEBUS_CONNECTION=Endpoint=sb://x"}, want: `servicebus.namespace = "x.example" (MESSAGEHUB_SERVICEBUS_NAMESPACE): servicebus.connection names a namespace too; remove one of the two`},
		{name: "memory and a bus that keeps", args: []string{"--in-memory", "--servicebus-namespace", "x.example"}, want: `in-memory = "true" (--in-memory): what is taken from the bus would be lost when the hub stops; remove one of the two`},
		{name: "no queue", args: []string{"--servicebus-fifo-queue", "a b"}, want: `servicebus.fifo-queue = "a b" (--servicebus-fifo-queue): want the name of a queue, 1 to 260 characters of A-Z a-z 0-9 . _ - /, got "a b"`},
		{name: "one queue for both", args: []string{"--servicebus-fifo-queue", "q", "--servicebus-plain-queue", "q"}, want: `servicebus.plain-queue = "q" (--servicebus-plain-queue): it is servicebus.fifo-queue too; a queue has sessions, or it has none`},
		{name: "a listener without an embedded bus", environ: []string{"MESSAGEHUB_SERVICEBUS_NAMESPACE=x.example"}, args: []string{"--bus-listen", "127.0.0.1:0"}, want: `bus-listen = "127.0.0.1:0" (--bus-listen): there is nothing of the hub's own behind it, because of servicebus.namespace or servicebus.connection; remove one of the two`},
		{name: "a listener without a port", args: []string{"--bus-listen", "localhost"}, want: `bus-listen = "localhost" (--bus-listen): want HOST:PORT, such as 127.0.0.1:5672, or nothing for none`},
		{name: "a listener for everyone", args: []string{"--blob-listen", "0.0.0.0:10000"}, want: `blob-listen = "0.0.0.0:10000" (--blob-listen): its key is the well-known one; use 127.0.0.1:10000, or set exchange.key, tls.cert and tls.key`},
		{name: "a listener for everyone, though insecure", args: []string{"--bus-listen", ":5672", "--insecure"}, want: `bus-listen = ":5672" (--bus-listen): its key is the well-known one; use 127.0.0.1:5672, or set bus.key, tls.cert and tls.key`},
		{name: "a listener for everyone without TLS", environ: []string{"MESSAGEHUB_BUS_KEY=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}, args: []string{"--bus-listen", ":5672", "--insecure"}, want: `bus-listen = ":5672" (--bus-listen): nothing is encrypted; use 127.0.0.1:5672, or set bus.key, tls.cert and tls.key`},
		{name: "a key of the bus that is short", environ: []string{"MESSAGEHUB_BUS_KEY=c2hvcnQ="}, want: `bus.key = "[redacted]" (MESSAGEHUB_BUS_KEY): want at least 32 bytes in base64, such as openssl rand -base64 32 prints`},
		{name: "a key to no bus", environ: []string{"MESSAGEHUB_BUS_KEY=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "MESSAGEHUB_SERVICEBUS_NAMESPACE=x.example"}, want: `bus.key = "[redacted]" (MESSAGEHUB_BUS_KEY): there is nothing of the hub's own to use it for, because of servicebus.namespace or servicebus.connection; remove one of the two`},
		{name: "keys in production", yaml: "objects: {stores: [{bucket: 'a/*', kind: azure, endpoint: 'https://a.example', key-file: k}]}", environ: []string{"MESSAGEHUB_COSMOS_KEY=c2VjcmV0", "MESSAGEHUB_BLOB_KEY=c2VjcmV0"}, args: []string{"--production", "--cosmos-endpoint", "https://c.example", "--blob-endpoint", "https://b.example"}, want: `cosmos.key = "[redacted]" (MESSAGEHUB_COSMOS_KEY): production uses no keys; remove it, and give the identity of the machine a role
blob.key = "[redacted]" (MESSAGEHUB_BLOB_KEY): production uses no keys; remove it, and give the identity of the machine a role
objects.stores = "a/* (azure)" (hub.yaml line 1): a/* has a key; production uses no keys; remove it, and give the identity of the machine a role`},
		{name: "a namespace with a port that is none", environ: []string{"MESSAGEHUB_SERVICEBUS_NAMESPACE=x.example:http"}, want: `servicebus.namespace = "x.example:http" (MESSAGEHUB_SERVICEBUS_NAMESPACE): want the host name alone, such as NAME.servicebus.windows.net`},
		{name: "an account that is no URL", yaml: "blob: {endpoint: x}", want: `blob.endpoint = "x" (hub.yaml line 1): want a URL such as https://ACCOUNT.blob.core.windows.net/`},
		{name: "an account with its key", yaml: "blob: {endpoint: 'https://a.example/?sig=c'}", want: `blob.endpoint (hub.yaml line 1): the value holds a secret, so it is not shown; put it in blob.key (MESSAGEHUB_BLOB_KEY)`},
		{name: "a key to no account", environ: []string{"MESSAGEHUB_BLOB_KEY=c2VjcmV0"}, want: `blob.key = "[redacted]" (MESSAGEHUB_BLOB_KEY): there is no blob.endpoint to use it with; add that, or remove this`},
		{name: "no container", args: []string{"--blob-container", "Hub"}, want: `blob.container = "Hub" (--blob-container): want 3 to 50 characters of a-z 0-9 and single - between them`},
		{name: "operators without a port", yaml: "admin-listen: localhost", want: `admin-listen = "localhost" (hub.yaml line 1): want HOST:PORT, such as 127.0.0.1:8080`},
		{name: "operators and actors at one port", args: []string{"--listen", ":8081", "--insecure"}, want: `admin-listen = "127.0.0.1:8081" (the default): listen is :8081, which has this port, too; choose another port for one of them, or set both to the same address to have one listener`},
		{name: "operators' routes for everyone", yaml: "admin-listen: 0.0.0.0:8081", want: `admin-listen = "0.0.0.0:8081" (hub.yaml line 1): every client that reaches this address may read /metrics; use 127.0.0.1:8081, or give --insecure if every client that reaches it is trusted`},
		{name: "a rate that is none", yaml: "limits: {requests: 0}", want: `limits.requests = "0" (hub.yaml line 1): want a whole number from 1 to 1000000, or none`},
		{name: "a certificate without its key", yaml: "tls: {cert: a.crt}", want: `tls.key = "" (the default): a certificate needs its key; set tls.cert and tls.key, or neither`},
		{name: "client certificates without TLS", yaml: "tls: {client-ca: a.crt}", want: `tls.client-ca = "a.crt" (hub.yaml line 1): only a hub with TLS of its own sees certificates of clients; set tls.cert and tls.key, or remove this`},
		{name: "TLS twice", yaml: "tls: {cert: a.crt, key: a.key, terminated: true}", want: `tls.terminated = "true" (hub.yaml line 1): the hub has TLS of its own because of tls.cert; remove one of the two`},
		{name: "a client without an issuer", yaml: "console: {client-id: hub}", want: `console.client-id = "hub" (hub.yaml line 1): there is no oidc.issuer at which operators could sign in; add that, or remove this`},
		{name: "a secret without a client", yaml: "console: {client-secret: hush}", want: `console.client-secret = "[redacted]" (hub.yaml line 1): there is no console.client-id that it is of; add that, or remove this`},
		{name: "a short session key", yaml: "console: {session-key: hush}", want: `console.session-key = "[redacted]" (hub.yaml line 1): want 26 characters or more, such as openssl rand -hex 32 prints`},
		{name: "OIDC", environ: []string{"MESSAGEHUB_OIDC_ISSUER=x", "MESSAGEHUB_OIDC_AUDIENCE=y"}, want: `oidc.issuer = "x" (MESSAGEHUB_OIDC_ISSUER): want the URL of the issuer as the claim iss has it, such as https://login.microsoftonline.com/TENANT/v2.0`},

		{name: "two domains at one queue", yaml: "domains: [{name: Billing, content: request, queue: charges}]", want: `domains = "Billing (request)" (hub.yaml line 1): queue charges is for Billing and for Charges; give each its own
domains = "Billing (request)" (hub.yaml line 1): queue charges-reply is for Billing and for Charges; give each its own
domains = "Billing (request)" (hub.yaml line 1): queue charges-dequeue is for Billing and for Charges; give each its own`},
		{name: "events of two domains at one queue", yaml: "domains: [{name: Charges, ingest-queue: q}, {name: TimeSeries, ingest-queue: Q}, {name: Aggregations, ingest-queue: dataavailable}]", want: `domains = "Charges, TimeSeries, Aggregations" (hub.yaml line 1): queue Q is for the events of TimeSeries and for the events of Charges; give each its own
domains = "Charges, TimeSeries, Aggregations" (hub.yaml line 1): queue dataavailable is for the events of Aggregations and for servicebus.plain-queue; give each its own`},
		{name: "a domain with a queue of no name", yaml: "domains: [{name: Billing, reply-queue: ''}]", want: `domains (hub.yaml line 1): domain 1: reply-queue: want the name of a queue, 1 to 260 characters of A-Z a-z 0-9 . _ - /, got ""`},
		{name: "a domain of another mode", yaml: "domains: [{name: Charges, content: all}]", want: `domains (hub.yaml line 1): domain 1: content: want manifest, inline or request, got "all"`},
		{name: "a domain with a slip", yaml: "domains: [{nam: Charges}]", want: "domains (hub.yaml line 1): domain 1: nam: no such key; did you mean name?"},
		{name: "a domain without a name", yaml: "domains: [{group: g}]", want: "domains (hub.yaml line 1): domain 1: it has no name; give the origin that its events state"},
		{name: "a domain that is called so on the bus only", yaml: "domains: [{name: Wholesale}]", want: "domains (hub.yaml line 1): domain 1: name: on the bus, Wholesale is another name of Aggregations; use that, or choose one of its own"},
		{name: "a domain that is a number of the original's", yaml: "domains: [{name: '5'}]", want: "domains (hub.yaml line 1): domain 1: name: on the bus, 5 is another name of MeteringPoints; use that, or choose one of its own"},
		{name: "two queues that the bus takes for one", yaml: "servicebus: {plain-queue: DataAvailable-FIFO}", want: `servicebus.plain-queue = "DataAvailable-FIFO" (hub.yaml line 1): it is servicebus.fifo-queue too; a queue has sessions, or it has none`},
		{name: "a key of blobs that is none", environ: []string{"MESSAGEHUB_BLOB_KEY=canary?"}, args: []string{"--blob-endpoint", "http://127.0.0.1:1/a"}, want: `blob.key = "[redacted]" (MESSAGEHUB_BLOB_KEY): want the key as the account tells it, in base64`},
		{name: "a domain twice", yaml: "domains: [{name: A}, {name: A}]", want: "domains (hub.yaml line 1): domain 2: A stands in the list twice; keep one"},
		{name: "no list", yaml: "domains: A", want: "domains (hub.yaml line 1): want a list such as [{name: Billing, group: masterdata, content: inline}]"},

		{name: "a delay that is too long", yaml: "push: {delays: 0 8d}", want: "push.delays = \"0 8d\" (hub.yaml line 1): want times up to 168h0m0s, such as 0 60 10m 1h"},
		{name: "no delays", yaml: "push: {delays: ' '}", want: "push.delays = \" \" (hub.yaml line 1): want 1 to 64 times, such as 0 60 10m 1h"},
		{name: "a first delay", yaml: "push: {delays: 5 60}", want: "push.delays = \"5s 1m\" (hub.yaml line 1): want 0 as the first time: a new delivery is called at once"},
		{name: "more attempts than delays", yaml: "push: {attempts: 13}", want: "push.attempts = \"13\" (hub.yaml line 1): push.delays has only 12 delays; add some, or lower this"},
		{name: "more calls to a receiver than a settlement stores", yaml: "push: {concurrency: 65}", want: "push.concurrency = \"65\" (hub.yaml line 1): want at most 64"},
		{name: "an address that is no range", yaml: "push: {allow: 10.0.0.1/8}", want: "push.allow = \"10.0.0.1/8\" (hub.yaml line 1): want ranges of addresses, such as 10.0.0.0/8 fd00::/8"},
		{name: "a grace that is too long", yaml: "push: {secret-grace: 8d}", want: "push.secret-grace = \"8d\" (hub.yaml line 1): want a time of 0s to 7d, such as 36h or 2d"},
		{name: "a short key", yaml: "push: {secret-key: c2hvcnQ=}", want: "push.secret-key = \"[redacted]\" (hub.yaml line 1): key 1: want the Base64 of 32 bytes, such as openssl rand -base64 32 prints"},
		{name: "a queue for two things", yaml: "objects: {queue: dataavailable}", want: `objects.queue = "dataavailable" (hub.yaml line 1): it is servicebus.plain-queue too; give each its own`},
		{name: "all faults at once", yaml: "listen: x\nlog: {level: y}\nz: 1", want: "log.level = \"y\" (hub.yaml line 2): want debug, info, warn or error\nz (hub.yaml line 3): no such key; known are actors, admin-listen, admin.token, admin.token-file, admin.tokens, blob-listen, blob.container, blob.endpoint, blob.key, blob.key-file, broker.channels, broker.consumers, broker.fail-safe, broker.max-retry, broker.producers, broker.rational-delay, broker.retrigger-url, broker.retry-delay, broker.token-header, bus-listen, bus.key, console.client-id, console.client-secret, console.client-secret-file, console.session-key, console.session-key-file, cosmos.consistency, cosmos.database, cosmos.endpoint, cosmos.id-memory, cosmos.key, cosmos.key-file, cosmos.sweep-units, cosmos.tail-events, data, domains, drain-delay, exchange.key, in-memory, insecure, limits.answers, limits.answers-per-actor, limits.bodies, limits.bodies-per-address, limits.bus-buffer, limits.bus-connections, limits.bus-token-timeout, limits.connections, limits.connections-per-address, limits.content, limits.events, limits.events-per-second, limits.free-disk, limits.min-rate, limits.payload, limits.payload-depth, limits.payload-number, limits.request-body, limits.requests, limits.trusted-proxies, limits.waiting, listen, log.format, log.level, objects.link-limit, objects.link-time, objects.queue, objects.retention, objects.shards, objects.stores, objects.topic, oidc.actor-claim, oidc.audience, oidc.issuer, oidc.roles-claim, oidc.tenants, ordering, production, push.allow, push.attempts, push.concurrency, push.delays, push.insecure-http, push.secret-grace, push.secret-key, push.secret-key-file, push.timeout, push.workers, retention, servicebus.connection, servicebus.connection-file, servicebus.fifo-queue, servicebus.namespace, servicebus.plain-queue, servicebus.sessions, survey.units, tls.cert, tls.client-ca, tls.key, tls.terminated, watches.attempts, watches.base, watches.period"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.yaml, tc.environ, tc.args...)
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestARetentionIsParsedAndPrinted(t *testing.T) {
	for said, want := range map[string]struct {
		span    time.Duration
		printed string
	}{
		"7d":      {7 * 24 * time.Hour, "7d"},
		"168h":    {7 * 24 * time.Hour, "7d"},
		"36h":     {36 * time.Hour, "36h"},
		"90s":     {90 * time.Second, "1m30s"},
		"1m":      {time.Minute, "1m"},
		"Forever": {0, "forever"},
		"0":       {0, "forever"},
	} {
		got, err := load(t, "", nil, "--retention", said)
		require.NoError(t, err)
		require.Equal(t, want.span, got.Retention, said)
		require.Contains(t, got.String(), "retention = "+want.printed+" (--retention)\n")
	}
}

func TestACommandMayHaveFlagsForSomeKeysOnly(t *testing.T) {
	flags := pflag.NewFlagSet("check", pflag.ContinueOnError)
	config.AddFlags(flags, "data")
	require.Nil(t, flags.Lookup("listen"))
	require.NoError(t, flags.Parse([]string{"--data", "here"}))
	got, err := config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_LISTEN=127.0.0.1:7"}, Flags: flags})
	require.NoError(t, err)
	require.Equal(t, "here", got.Data)
	require.Equal(t, "127.0.0.1:7", got.Listen, "the other layers say what they said")
}

func TestAMissingFileIsReportedWithItsSettings(t *testing.T) {
	_, err := config.Load(config.Inputs{File: "nowhere.yaml"})
	require.EqualError(t, err, "cannot read the configuration file: open nowhere.yaml: no such file or directory; check the path in --config or MESSAGEHUB_CONFIG")
	_, err = load(t, "", []string{"MESSAGEHUB_CONFIG=elsewhere.yaml"})
	require.ErrorContains(t, err, "open elsewhere.yaml")
}

func TestTheEnvironmentCanNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(path, []byte("# nothing but\nlog:\n#  level: debug\ndata: here\n"), 0o600))
	got, err := load(t, "", []string{"MESSAGEHUB_CONFIG=" + path})
	require.NoError(t, err)
	require.Equal(t, "here", got.Data)
}

func TestLoopbackAddressesNeedNoInsecure(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "127.9.9.9:80", "[::1]:80", "localhost:80", "[::ffff:127.0.0.1]:80"} {
		_, err := load(t, "", nil, "--listen", listen)
		require.NoError(t, err, listen)
	}
	for _, listen := range []string{":80", "0.0.0.0:80", "[::]:80", "10.0.0.1:80", "localhost.example:80"} {
		_, err := load(t, "", nil, "--listen", listen)
		require.ErrorContains(t, err, "--insecure", listen)
		_, err = load(t, "", nil, "--listen", listen, "--insecure")
		require.NoError(t, err, listen)
	}
}

func TestTheFlagInMemoryOverridesAConfiguredFolder(t *testing.T) {
	got, err := load(t, "data: kept", nil, "--in-memory")
	require.NoError(t, err)
	require.True(t, got.InMemory)
}

func TestDomains_ExtendAndOverrideTheMarket(t *testing.T) {
	got, err := load(t, `
domains:
  - name: Charges
    content: inline
  - name: Billing
    group: masterdata
  - name: Alone
`, nil)
	require.NoError(t, err)
	origin := func(name string) domain.Origin {
		o, err := domain.ParseOrigin(name)
		require.NoError(t, err)
		return o
	}
	groups := got.Groups()
	for name, want := range map[string]string{
		"Charges": "masterdata", "Billing": "masterdata", "Alone": "Alone", "TimeSeries": "timeseries",
	} {
		group, err := groups.GroupOf(origin(name))
		require.NoError(t, err)
		require.Equal(t, want, group.String(), name)
	}
	require.Equal(t, map[domain.Origin]domain.ContentMode{
		origin("Charges"): domain.Inline, origin("Billing"): domain.Manifest, origin("Alone"): domain.Manifest,
	}, got.Content())
	require.Contains(t, got.String(), "domains = Charges (inline), Billing, Alone (hub.yaml line 3)\n")
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	const secret = "c2VjcmV0LWtleQ=="
	got, err := load(t, "", []string{"MESSAGEHUB_COSMOS_ENDPOINT=https://a.example/", "MESSAGEHUB_COSMOS_KEY=" + secret, "MESSAGEHUB_ADMIN_TOKEN=" + secret})
	require.NoError(t, err)
	require.Equal(t, secret, got.Admin.Token.Reveal())
	require.Equal(t, secret, got.Cosmos.Key.Reveal())

	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", got, "key", got.Cosmos.Key, "cosmos", got.Cosmos)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", got, "key", got.Cosmos.Key, "cosmos", got.Cosmos)
	marshalled, err := json.Marshal(got.Cosmos)
	require.NoError(t, err)
	for _, printed := range []string{
		log.String(), string(marshalled), got.String(),
		fmt.Sprint(got), fmt.Sprintf("%v %+v %#v %s %q", got, got, got.Cosmos, got.Cosmos.Key, got.Cosmos.Key),
	} {
		require.NotContains(t, printed, secret)
		require.Contains(t, printed, "[redacted]")
	}
	_, err = load(t, "", []string{"MESSAGEHUB_COSMOS_KEY=" + secret, "MESSAGEHUB_ADMIN_TOKEN=" + secret[:7]})
	require.NotContains(t, err.Error(), secret[:7])
	require.NotContains(t, err.Error(), secret)
}

func TestTheLogOfAConfigNamesTheKeysThatDifferFromTheirDefaults(t *testing.T) {
	var log bytes.Buffer
	cfg, err := load(t, "", []string{"MESSAGEHUB_LISTEN=127.0.0.1:9000", "MESSAGEHUB_ADMIN_TOKEN=a-token-for-operators"})
	require.NoError(t, err)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", cfg)
	var line struct {
		Config map[string]string `json:"config"`
	}
	require.NoError(t, json.Unmarshal(log.Bytes(), &line))
	require.Equal(t, map[string]string{"listen": "127.0.0.1:9000", "admin_token": "[redacted]"}, line.Config)
}

func TestSizesArePrintedInTheirLargestWholeUnit(t *testing.T) {
	for size, want := range map[config.Size]string{1: "1", 1023: "1023", 1024: "1KB", 1025: "1025", 3 << 20: "3MB", 1 << 30: "1GB"} {
		require.Equal(t, want, size.String())
	}
}

func TestEveryDomainHasQueuesNamedAfterIt(t *testing.T) {
	got, err := load(t, "domains: [{name: Billing}, {name: Charges, queue: price-lists, dequeue-queue: told}]", nil)
	require.NoError(t, err)
	names := make(map[string]contract.Queues)
	for origin, queues := range got.Queues() {
		names[origin.String()] = queues
	}
	require.Equal(t, contract.Queues{Request: "billing", Reply: "billing-reply", Dequeue: "billing-dequeue"}, names["Billing"])
	require.Equal(t, contract.Queues{Request: "price-lists", Reply: "price-lists-reply", Dequeue: "told"}, names["Charges"])
	require.Equal(t, contract.Queues{Request: "wholesale", Reply: "wholesale-reply", Dequeue: "wholesale-dequeue"}, names["Aggregations"])
	require.Len(t, names, 6)
}

func TestGroups_AreLimitedToOneBatch(t *testing.T) {
	domains := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("{name: Domain%d}", i))
		}
		return "domains: [" + strings.Join(all, ", ") + "]"
	}
	room := 99 - len(domain.DefaultGroups().All())
	_, err := load(t, domains(room), nil)
	require.NoError(t, err)
	_, err = load(t, domains(room+1), nil)
	require.ErrorContains(t, err, "they make 100 groups, of which there are at most 99")
}

func TestTLSCertHasAFormerName(t *testing.T) {
	got, err := load(t, "tls: {certificate: a.crt, key: a.key}", nil)
	require.NoError(t, err)
	require.Equal(t, config.TLS{Certificate: "a.crt", Key: "a.key"}, got.TLS)
	require.Contains(t, got.String(), "tls.cert = a.crt (hub.yaml line 1)\n")
	got, err = load(t, "", []string{"MESSAGEHUB_TLS_CERTIFICATE=b.crt", "MESSAGEHUB_TLS_KEY=b.key"})
	require.NoError(t, err)
	require.Equal(t, "b.crt", got.TLS.Certificate)
}
