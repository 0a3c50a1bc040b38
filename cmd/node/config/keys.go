package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A key describes one setting of an operator.
type key struct {
	name  string // full name, with a dot between section and key
	flag  bool   // the key may be a flag; never true for a secret, because other users of the machine can read flags
	usage string
	in    func(*Config) value
}

// A value converts a field of a Config to and from text. An error of Set says
// what is wrong with a text, and which texts are valid.
type value interface {
	Set(text string) error
	String() string
}

// keys lists all keys, in the order of the help and the handbook.
var keys = []key{
	{"listen", true, "`HOST:PORT` to listen on; port 0 for any free port", func(c *Config) value { return (*textValue)(&c.Listen) }},
	{"admin-listen", true, "`HOST:PORT` for operators and their tools: /v1/admin, /metrics, /debug/pprof and the probes; of these, listen serves only the probes. The default is 127.0.0.1:8081 or, if the port of listen is 0, 127.0.0.1:0. If it is empty or the same as listen, as with 127.0.0.1:0 for listen, listen serves everything", func(c *Config) value { return (*listenerValue)(&c.AdminListen) }},
	{"tls.cert", false, "PEM file with the hub's certificate and the certificates of its issuers; with it, the hub speaks HTTPS and HTTP/2. A changed file takes effect without a restart", func(c *Config) value { return (*textValue)(&c.TLS.Certificate) }},
	{"tls.key", false, "PEM file with the private key of tls.cert", func(c *Config) value { return (*textValue)(&c.TLS.Key) }},
	{"tls.client-ca", false, "PEM file with the authorities whose client certificates the hub accepts; with it, the hub asks each client for a certificate, but also accepts clients without one. A changed file takes effect without a restart", func(c *Config) value { return (*textValue)(&c.TLS.ClientCA) }},
	{"tls.terminated", false, "a gateway in front of the hub terminates TLS, and forwards requests over plain HTTP", func(c *Config) value { return (*boolValue)(&c.TLS.Terminated) }},
	{"data", true, "`FOLDER` that stores all data; only one process may use it. If all data is on Azure, the folder stores only the operators' token", func(c *Config) value { return (*textValue)(&c.Data) }},
	{"in-memory", true, "store all data in memory, and lose it when the hub stops", func(c *Config) value { return (*boolValue)(&c.InMemory) }},
	{"insecure", true, "accept requests of other machines without tokens: every client that reaches the hub may act as any actor", func(c *Config) value { return (*boolValue)(&c.Insecure) }},
	{"production", true, "use no keys of Azure and no identities of developers: refuse cosmos.key, blob.key, servicebus.connection and keys of objects.stores on Azure, and require AZURE_TOKEN_CREDENTIALS", func(c *Config) value { return (*boolValue)(&c.Production) }},
	{"drain-delay", true, "`TIME` for which a stopping hub still serves requests while /readyz responds with 503, so that load balancers send new requests to other nodes; up to 5m", func(c *Config) value { return (*delayValue)(&c.DrainDelay) }},
	{"cosmos.endpoint", true, "`URL` of an Azure Cosmos DB account, in place of the embedded engine", func(c *Config) value { return (*textValue)(&c.Cosmos.Endpoint) }},
	{"cosmos.key", false, "account key, for emulators; without it, the default credential of azidentity", func(c *Config) value {
		return &secretValue{&c.Cosmos.Key, "leave it out to use the default credential"}
	}},
	{"cosmos.key-file", false, "file with the account key, in place of cosmos.key", fileKey("cosmos.key-file")},
	{"cosmos.database", true, "`NAME` of the database", func(c *Config) value { return (*textValue)(&c.Cosmos.Database) }},
	{"cosmos.consistency", true, "consistency `LEVEL` of the account; by default, the hub reads it from the account", func(c *Config) value { return choiceOf(&c.Cosmos.Consistency, levels...) }},
	{"cosmos.tail-events", false, "maximum number of the newest events of a kind that stay in a recipient's head before they are written to a page together, up to 200. Use 0 if a node of a version without this setting runs, or may run again", func(c *Config) value { return (*tailValue)(&c.Cosmos.TailEvents) }},
	{"cosmos.sweep-units", false, "maximum request units per second for the removal of dequeued events, of all containers together; the hub uses fewer while the account throttles requests", func(c *Config) value { return (*countValue)(&c.Cosmos.SweepUnits) }},
	{"cosmos.id-memory", false, "memory for the ids of received events; one recipient may use up to half of it. A Save reads ids that are not in memory from the store", func(c *Config) value { return (*sizeValue)(&c.Cosmos.IDMemory) }},
	{"survey.units", false, "maximum request units per second for the survey of mailboxes, which provides the list of queues and metrics; only one node at a time runs the survey. 0: this node runs no survey", func(c *Config) value { return (*unitsValue)(&c.Survey.Units) }},
	{"servicebus.namespace", true, "`HOST` name of an Azure Service Bus namespace, in place of the embedded bus", func(c *Config) value { return (*textValue)(&c.ServiceBus.Namespace) }},
	{"servicebus.connection", false, "connection string of a namespace, in place of servicebus.namespace", func(c *Config) value {
		return &secretValue{&c.ServiceBus.Connection, "leave it out to use servicebus.namespace or the embedded bus"}
	}},
	{"servicebus.connection-file", false, "file with the connection string, in place of servicebus.connection", fileKey("servicebus.connection-file")},
	{"servicebus.fifo-queue", true, "`QUEUE` from which the hub receives events, with a session for each recipient; none: do not receive from such a queue", func(c *Config) value { return (*queueValue)(&c.ServiceBus.FIFO) }},
	{"servicebus.plain-queue", true, "`QUEUE` without sessions from which the hub receives events; none: do not receive from such a queue", func(c *Config) value { return (*queueValue)(&c.ServiceBus.Plain) }},
	{"servicebus.sessions", true, "maximum number of concurrent sessions, `N`", func(c *Config) value { return (*countValue)(&c.ServiceBus.Sessions) }},
	{"bus-listen", true, "`HOST:PORT` at which domains reach the embedded bus; empty: domains cannot reach it. If the default port is in use, the hub logs a warning and starts without it", func(c *Config) value { return (*listenerValue)(&c.BusListen) }},
	{"bus.key", false, "secret of the key RootManageSharedAccessKey of the embedded bus, in base64; with it and tls.cert, bus-listen may be an address that other machines can reach, over TLS only", func(c *Config) value {
		return &secretValue{&c.Bus.Key, "leave it out to have the well-known key"}
	}},
	{"blob.endpoint", true, "`URL` of an Azure Storage account, in place of a folder", func(c *Config) value { return (*textValue)(&c.Blob.Endpoint) }},
	{"blob.key", false, "account key, for emulators; without it, the default credential of azidentity", func(c *Config) value {
		return &secretValue{&c.Blob.Key, "leave it out to use the default credential"}
	}},
	{"blob.key-file", false, "file with the account key, in place of blob.key", fileKey("blob.key-file")},
	{"blob.container", true, "`PREFIX` of the names of the containers for content and exchange", func(c *Config) value { return (*containerValue)(&c.Blob.Container) }},
	{"blob-listen", true, "`HOST:PORT` at which domains reach the embedded exchange; empty: domains cannot reach it. If the default port is in use, the hub logs a warning and starts without it", func(c *Config) value { return (*listenerValue)(&c.BlobListen) }},
	{"exchange.key", false, "key of the embedded exchange, in base64; with it and tls.cert, blob-listen may be an address that other machines can reach, over HTTPS only", func(c *Config) value {
		return &secretValue{&c.Exchange.Key, "leave it out to have the well-known key"}
	}},
	{"admin.token-file", false, "file with the bearer token of the operators, in place of admin.token", fileKey("admin.token-file")},
	{"admin.tokens", false, "hashes of bearer tokens of operators, so that one token can be added before another is removed: a list of {name, sha256}", func(c *Config) value { return (*adminTokensValue)(&c.Admin.Tokens) }},
	{"oidc.issuer", false, "issuers of the tokens that identify senders, each spelled as in the claim iss; without an issuer, the hub trusts the header X-Actor-Id", func(c *Config) value { return (*wordsValue)(&c.OIDC.Issuers) }},
	{"oidc.audience", false, "audiences; a token must be for one of them", func(c *Config) value { return (*wordsValue)(&c.OIDC.Audiences) }},
	{"oidc.tenants", false, "tenants of Microsoft Entra; a token must be from one of them. Without any, all tenants are accepted", func(c *Config) value { return (*wordsValue)(&c.OIDC.Tenants) }},
	{"oidc.roles-claim", false, "claim with the roles: actor, domain:NAME, operator.read, operator, metrics", func(c *Config) value { return (*textValue)(&c.OIDC.RolesClaim) }},
	{"oidc.actor-claim", false, "claim with the id of the actor, or with a list of ids", func(c *Config) value { return (*textValue)(&c.OIDC.ActorClaim) }},
	{"actors", false, "registry of the clients that are actors: a list of {client, tenant, issuer, certificate-name, certificate-sha256, actor, groups}. A changed list in the file takes effect without a restart", func(c *Config) value { return (*clientsValue)(&c.Actors) }},
	{"admin.token", false, "bearer token of the operators; without it, the hub generates a token and stores it in the data folder, in the file admin.token", func(c *Config) value {
		return &secretValue{&c.Admin.Token, "leave it out, and the hub makes one"}
	}},
	{"console.client-id", false, "client at the first oidc.issuer, with which operators sign in to the console; without it, they sign in with a token of the hub", func(c *Config) value { return (*textValue)(&c.Console.ClientID) }},
	{"console.client-secret", false, "secret of that client; a public client has none", func(c *Config) value {
		return &secretValue{&c.Console.ClientSecret, "leave it out for a public client"}
	}},
	{"console.client-secret-file", false, "file with the secret, in place of console.client-secret", fileKey("console.client-secret-file")},
	{"console.session-key", false, "secret from which the key of the console's sessions is derived; nodes behind one address need the same one. Without it, the key is derived from admin.token", func(c *Config) value {
		return &secretValue{&c.Console.SessionKey, "leave it out to use admin.token"}
	}},
	{"console.session-key-file", false, "file with the secret, in place of console.session-key", fileKey("console.session-key-file")},
	{"domains", false, "origins besides those of the energy market, or changes to these: a list of {name, group, content, queue, reply-queue, dequeue-queue, ingest-queue}", func(c *Config) value { return (*domainsValue)(&c.Domains) }},
	{"ordering", true, "keep the events of each `SCOPE` in order: cabinet (recipient, origin and content type), or recipient (all events of its group)", func(c *Config) value {
		return choiceOf((*string)(&c.Ordering), string(domain.ByCabinet), string(domain.ByRecipient))
	}},
	{"retention", true, "keep dequeued events for this `TIME`, such as 36h or 7d, or forever", func(c *Config) value { return (*retentionValue)(&c.Retention) }},
	{"push.workers", false, "maximum number of concurrent calls to receivers", func(c *Config) value { return (*countValue)(&c.Push.Workers) }},
	{"push.concurrency", false, "maximum number of concurrent calls to one receiver, up to 64", func(c *Config) value { return (*countValue)(&c.Push.Concurrency) }},
	{"push.timeout", false, "maximum time of a call, from looking up the host to the last byte of the answer", func(c *Config) value { return (*timeoutValue)(&c.Push.Timeout) }},
	{"push.delays", false, "pauses before the attempts of a delivery: before the first attempt (0), then after each failed attempt. A number without a unit is in seconds", func(c *Config) value { return (*delaysValue)(&c.Push.Delays) }},
	{"push.attempts", false, "maximum number of calls of a delivery; auto: the number of times in push.delays", func(c *Config) value { return auto((*countValue)(&c.Push.Attempts)) }},
	{"push.allow", false, "ranges of addresses that receivers may have in addition to public addresses, such as 127.0.0.0/8 10.0.0.0/8", func(c *Config) value { return (*prefixesValue)(&c.Push.Allow) }},
	{"push.insecure-http", false, "allow receivers with http URLs, although others on the network can read and change the messages", func(c *Config) value { return (*boolValue)(&c.Push.InsecureHTTP) }},
	{"push.secret-key", false, "keys that seal the secrets of subscriptions, each the Base64 of 32 bytes; the first key seals new secrets. Without it, the hub generates a key and stores it in the data folder, in the file push.key, unless payloads are on Azure", func(c *Config) value {
		return &secretValue{&c.Push.SecretKey, "leave it out, and the hub makes one"}
	}},
	{"push.secret-key-file", false, "file with the keys, in place of push.secret-key", fileKey("push.secret-key-file")},
	{"push.secret-grace", false, "time after a rotation in which calls are also signed with the previous secret, such as 36h or 2d", func(c *Config) value { return (*graceValue)(&c.Push.SecretGrace) }},
	{"broker.max-retry", false, "maximum number of retries of a job after its first attempt, up to 100; after the last one the job is dead", func(c *Config) value { return (*retryValue)(&c.Broker.MaxRetry) }},
	{"broker.retry-delay", false, "time before the first retry of a job; the time doubles with each further retry, and varies randomly by a fifth. A number without a unit is in seconds", func(c *Config) value { return (*pauseValue)(&c.Broker.RetryDelay) }},
	{"broker.fail-safe", false, "what this node does with the deliveries of a node of the same account that died, including those to subscriptions: on (it takes them over within 10 seconds), off (it takes them over at its next start, or when one of the jobs is re-triggered; until then, or until a node with on takes them over, they wait and are not lost), or worker (like off, but it also re-triggers overdue jobs of the broker)", func(c *Config) value {
		return choiceOf(&c.Broker.FailSafe, FailSafeOn, FailSafeOff, FailSafeWorker)
	}},
	{"broker.rational-delay", false, "time by which a job must be overdue before the worker of broker.fail-safe re-triggers it. A number without a unit is in seconds", func(c *Config) value { return (*pauseValue)(&c.Broker.RationalDelay) }},
	{"broker.retrigger-url", false, "`URL` at which the worker of broker.fail-safe lists and re-triggers jobs, such as the URL of a load balancer; by default the node itself. The worker sends the token of the operators, so all nodes behind the URL need the same admin.token", func(c *Config) value { return (*hubURL)(&c.Broker.RetriggerURL) }},
	{"broker.token-header", false, "name of the header that contains the consumer's token in calls to the consumer", func(c *Config) value { return (*headerValue)(&c.Broker.TokenHeader) }},
	{"broker.producers", false, "producers that the hub creates or changes at its start: a list of {id, name, token-file, token-env, token}", func(c *Config) value {
		return partiesValue{&c.Broker.Producers, domain.Producers}
	}},
	{"broker.channels", false, "channels that the hub creates or changes at its start: a list of {id, name, token-file, token-env, token}", func(c *Config) value {
		return partiesValue{&c.Broker.Channels, domain.Channels}
	}},
	{"broker.consumers", false, "consumers that the hub creates or changes at its start: a list of {channel, id, name, callback-url, token-file, token-env, token}", func(c *Config) value {
		return partiesValue{&c.Broker.Consumers, domain.PartyList{}}
	}},
	{"watches.base", false, "`URL` with which the names of resources in watches begin, such as https://hub.example.org; it must be the same for all nodes. The default is the URL of the node on its own machine", func(c *Config) value { return (*hubURL)(&c.Watches.Base) }},
	{"watches.period", false, "time between a change and the second attempt to notify a watch of it; the next attempts follow after twice, four and eight times this time. From 1s to 30d; a number without a unit is in seconds", func(c *Config) value { return (*periodValue)(&c.Watches.Period) }},
	{"watches.attempts", false, "maximum number of attempts to notify a watch of a change, up to 20", func(c *Config) value { return (*attemptsValue)(&c.Watches.Attempts) }},
	{"objects.queue", true, "`QUEUE` without sessions from which the hub receives events of objects; none: do not receive from such a queue", func(c *Config) value { return (*queueValue)(&c.Objects.Queue) }},
	{"objects.shards", false, "number of partitions of a new bucket of objects, 1 to 256; existing buckets keep theirs", func(c *Config) value { return (*shardsValue)(&c.Objects.Shards) }},
	{"objects.retention", false, "keep events of objects for this `TIME`, such as 90d, or forever. An older event is removed if its version has a newer event, and a deleted version after 14 days or more. An event that is older than this when it arrives is refused", func(c *Config) value { return (*retentionValue)(&c.Objects.Retention) }},
	{"objects.topic", false, "publish each change of the current state of an object to the topic object-changed, to which operators may subscribe; the setting must be the same for all nodes", func(c *Config) value { return (*boolValue)(&c.Objects.Topic) }},
	{"objects.stores", false, "stores that the hub may read: a list of {bucket, kind, endpoint, account, region, access-key, key-file, key-env, key, folder}", func(c *Config) value { return (*storesValue)(&c.Objects.Stores) }},
	{"objects.link-time", false, "maximum time for which a link to an object can be used, and also the default; up to 7d", func(c *Config) value { return (*linkTimeValue)(&c.Objects.LinkTime) }},
	{"objects.link-limit", false, "maximum bytes of an object that may have a link; auto: no limit", func(c *Config) value { return auto((*sizeValue)(&c.Objects.LinkLimit)) }},
	{"log.level", true, "lowest `LEVEL` of records in the log: debug, info, warn or error", func(c *Config) value { return (*levelValue)(&c.Log.Level) }},
	{"log.format", true, "`FORMAT` of the log: text, json, or auto (text for a terminal)", func(c *Config) value { return choiceOf(&c.Log.Format, "auto", "text", "json") }},
	{"limits.request-body", false, "maximum bytes of one request", func(c *Config) value { return (*sizeValue)(&c.Limits.RequestBody) }},
	{"limits.payload", false, "maximum bytes of one payload", func(c *Config) value { return (*sizeValue)(&c.Limits.Payload) }},
	{"limits.payload-depth", false, "maximum levels of nesting in one payload", func(c *Config) value { return (*countValue)(&c.Limits.PayloadDepth) }},
	{"limits.payload-number", false, "maximum characters of a number in a payload", func(c *Config) value { return (*countValue)(&c.Limits.PayloadNumber) }},
	{"limits.content", false, "maximum bytes of the content that a domain produces for one bundle", func(c *Config) value { return (*sizeValue)(&c.Limits.Content) }},
	{"limits.events", false, "maximum number of events of one request", func(c *Config) value { return (*countValue)(&c.Limits.Events) }},
	{"limits.waiting", false, "maximum number of Peeks that wait for data, and at most three quarters of limits.connections; actors that never had data may use a tenth of this number", func(c *Config) value { return (*countValue)(&c.Limits.Waiting) }},
	{"limits.bus-connections", false, "maximum number of connections to the embedded bus; a quarter is reserved for the hub itself", func(c *Config) value { return (*countValue)(&c.Limits.BusConnections) }},
	{"limits.bus-buffer", false, "bytes that all connections to the embedded bus may buffer together; beyond that, each connection may buffer less", func(c *Config) value { return (*sizeValue)(&c.Limits.BusBuffer) }},
	{"limits.bus-token-timeout", false, "a connection to the embedded bus must present a valid token within this time", func(c *Config) value { return (*timeoutValue)(&c.Limits.BusTokenTimeout) }},
	{"limits.bodies", false, "maximum memory for large request bodies, in bytes; auto: 128MB, or four times limits.request-body", func(c *Config) value { return auto((*sizeValue)(&c.Limits.Bodies)) }},
	{"limits.bodies-per-address", false, "maximum bytes of limits.bodies for one address; auto: half of limits.bodies", func(c *Config) value { return auto((*sizeValue)(&c.Limits.BodiesPerAddress)) }},
	{"limits.answers", false, "maximum memory for large answers that clients are reading, in bytes", func(c *Config) value { return (*sizeValue)(&c.Limits.Answers) }},
	{"limits.answers-per-actor", false, "maximum bytes of limits.answers for one actor; auto: a third", func(c *Config) value { return auto((*sizeValue)(&c.Limits.AnswersPerActor)) }},
	{"limits.min-rate", false, "minimum bytes per second that a client must send or read; slower clients are disconnected", func(c *Config) value { return (*sizeValue)(&c.Limits.MinRate) }},
	{"limits.requests", false, "maximum number of HTTP requests of one client per second; none: no limit", func(c *Config) value { return (*rateValue)(&c.Limits.Requests) }},
	{"limits.events-per-second", false, "maximum number of events per second that one client may send over HTTP; a single request may contain up to limits.events. none: no limit", func(c *Config) value { return (*rateValue)(&c.Limits.EventsPerSecond) }},
	{"limits.trusted-proxies", false, "ranges of addresses of proxies, such as 10.0.0.0/24, whose X-Forwarded-For header contains the address of the client; the header of other senders is ignored", func(c *Config) value { return (*prefixesValue)(&c.Limits.TrustedProxies) }},
	{"limits.connections", false, "maximum number of HTTP connections; auto: 14,000, or what the limit of file descriptors allows", func(c *Config) value { return auto((*countValue)(&c.Limits.Connections)) }},
	{"limits.connections-per-address", false, "maximum number of HTTP connections from one address, except for loopback addresses; auto: half of limits.connections", func(c *Config) value { return auto((*countValue)(&c.Limits.ConnectionsPerAddress)) }},
	{"limits.free-disk", false, "/readyz responds with 503 while the disk of the data folder has fewer free bytes", func(c *Config) value { return (*sizeValue)(&c.Limits.FreeDisk) }},
}

var levels = []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}

// formerNames maps former names of keys to current names. Files and environment
// variables may still use former names.
var formerNames = map[string]string{"tls.certificate": "tls.cert"}

// currentName returns the current name of a key, given its current or former
// name.
func currentName(name string) string { return cmp.Or(formerNames[name], name) }

func findKey(name string) (key, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

// isSection reports whether a key's name begins with name and a dot.
func isSection(name string) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return strings.HasPrefix(k.name, name+".") })
}

func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

func flagName(name string) string { return strings.ReplaceAll(name, ".", "-") }

// fileKey returns a function that accesses the path of a secret file in a
// Config. name is the key that sets the path.
func fileKey(name string) func(*Config) value {
	return func(c *Config) value {
		i := slices.IndexFunc(secretFiles, func(f secretFile) bool { return f.name == name })
		return (*textValue)(secretFiles[i].file(&c.SecretFiles))
	}
}

type textValue string

func (v *textValue) String() string { return string(*v) }
func (v *textValue) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("want a text, got nothing; leave the key out to get the default")
	}
	*v = textValue(s)
	return nil
}

type secretValue struct {
	at      *Secret
	without string // what an operator should do instead of setting an empty secret
}

func (v *secretValue) String() string { return v.at.String() }
func (v *secretValue) Set(s string) error {
	if s == "" {
		return fmt.Errorf("want a secret, got nothing; %s", v.without)
	}
	*v.at = Secret(s)
	return nil
}

type boolValue bool

func (v *boolValue) String() string { return strconv.FormatBool(bool(*v)) }
func (v *boolValue) Set(s string) error {
	switch strings.ToLower(s) {
	case "true", "1":
		*v = true
	case "false", "0":
		*v = false
	default:
		return errors.New("want true or false")
	}
	return nil
}

// IsBoolFlag makes pflag accept the flag without a value.
func (v *boolValue) IsBoolFlag() bool { return true }

type levelValue slog.Level

func (v *levelValue) String() string { return strings.ToLower(slog.Level(*v).String()) }
func (v *levelValue) Set(s string) error {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(s, l.String()) {
			*v = levelValue(l)
			return nil
		}
	}
	return errors.New("want debug, info, warn or error")
}

// choiceOf returns a value that accepts only the texts in from, ignoring case.
func choiceOf(at *string, from ...string) value { return &choiceValue{at, from} }

type choiceValue struct {
	at   *string
	from []string
}

func (v *choiceValue) String() string { return *v.at }
func (v *choiceValue) Set(s string) error {
	i := slices.IndexFunc(v.from, func(x string) bool { return strings.EqualFold(x, s) })
	if i < 0 {
		return fmt.Errorf("want %s or %s", strings.Join(v.from[:len(v.from)-1], ", "), v.from[len(v.from)-1])
	}
	*v.at = v.from[i]
	return nil
}

type countValue int

func (v *countValue) String() string { return strconv.Itoa(int(*v)) }
func (v *countValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return errors.New("want a whole number of at least 1")
	}
	*v = countValue(n)
	return nil
}

// A unitsValue is a number of request units per second.
type unitsValue int

func (v *unitsValue) String() string { return strconv.Itoa(int(*v)) }
func (v *unitsValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1_000_000 {
		return errors.New("want a whole number from 0 to 1000000")
	}
	*v = unitsValue(n)
	return nil
}

// A tailValue is the maximum number of events that a head contains before they
// are written to a page.
type tailValue int

func (v *tailValue) String() string { return strconv.Itoa(int(*v)) }
func (v *tailValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 200 {
		return errors.New("want a whole number from 0 to 200")
	}
	*v = tailValue(n)
	return nil
}

// A delayValue is a duration of at most maxDrainDelay.
type delayValue time.Duration

const maxDrainDelay = 5 * time.Minute

// String implements pflag.Value.
func (v *delayValue) String() string { return time.Duration(*v).String() }

// Set implements pflag.Value.
func (v *delayValue) Set(s string) error {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 || d > maxDrainDelay {
		return fmt.Errorf("want a time from 0s to %s, such as 5s", maxDrainDelay)
	}
	*v = delayValue(d)
	return nil
}

// A timeoutValue is a time limit.
type timeoutValue time.Duration

const minTimeout, maxTimeout = time.Second, time.Hour

func (v *timeoutValue) String() string { return time.Duration(*v).String() }
func (v *timeoutValue) Set(s string) error {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < minTimeout || d > maxTimeout {
		return fmt.Errorf("want a time from %v to %v, such as 10s", minTimeout, maxTimeout)
	}
	*v = timeoutValue(d)
	return nil
}

// autoText is the text of a zero value; the node then chooses the value.
const autoText = "auto"

// An autoValue is a number, or "auto" if the node chooses the number.
type autoValue[T interface{ countValue | sizeValue }, P interface {
	*T
	value
}] struct{ at P }

func auto[T interface{ countValue | sizeValue }, P interface {
	*T
	value
}](at P) value {
	return autoValue[T, P]{at}
}

func (v autoValue[T, P]) String() string {
	if *v.at == 0 {
		return autoText
	}
	return v.at.String()
}

func (v autoValue[T, P]) Set(s string) error {
	if strings.EqualFold(s, autoText) {
		*v.at = 0
		return nil
	}
	if err := v.at.Set(s); err != nil {
		return fmt.Errorf("%w, or %s", err, autoText)
	}
	return nil
}

// A Size is a number of bytes.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}}

// String returns the size in the largest unit of which the size is a multiple.
func (s Size) String() string {
	for _, u := range units {
		if n := int64(s); n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

type sizeValue Size

func (v *sizeValue) String() string { return Size(*v).String() }
func (v *sizeValue) Set(s string) error {
	n, err := ParseSize(s)
	if err == nil {
		*v = sizeValue(n)
	}
	return err
}

// ParseSize parses a size such as 512KB, 32MB or 1048576.
func ParseSize(s string) (Size, error) {
	const maxSize = 1 << 40
	digits, unit := strings.ToUpper(strings.TrimSpace(s)), int64(1)
	for _, u := range units {
		if cut, ok := strings.CutSuffix(digits, u.name); ok {
			digits, unit = strings.TrimSpace(cut), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > maxSize/unit {
		return 0, errors.New("want a size such as 512KB, 32MB or 1048576, up to 1024GB")
	}
	return Size(n * unit), nil
}

var _ encoding.TextMarshaler = Secret("")

// domainNames returns the names of the domains, for an error.
func domainNames(ds Domains) string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.Name.String()
		if d.Content != "" && d.Content != domain.Manifest {
			names[i] += " (" + string(d.Content) + ")"
		}
	}
	return strings.Join(names, ", ")
}
