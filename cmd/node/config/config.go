package config

import (
	"cmp"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/domain"
)

// A Config contains all settings of a node. Load returns only a valid Config.
type Config struct {
	Listen      string // HOST:PORT
	TLS         TLS
	AdminListen string // HOST:PORT of the listener for operators; "" or the same as Listen for a single listener, which is the default
	Data        string // data folder
	InMemory    bool
	Insecure    bool          // accept requests from other machines although the hub does not authenticate actors
	DrainDelay  time.Duration // how long a stopping hub continues to serve requests while /readyz returns 503
	Production  bool          // reject keys of Azure accounts, and also reject developers' identities
	Cosmos      Cosmos
	Survey      Survey

	ServiceBus ServiceBus
	BusListen  string // HOST:PORT of the embedded bus's listener for domains; "" for no listener
	Bus        EmbeddedEngine
	Blob       Blob
	BlobListen string // HOST:PORT of the embedded exchange's listener for domains; "" for no listener
	Exchange   EmbeddedEngine

	SecretFiles SecretFiles // paths of files from which Load reads secrets

	Admin    Admin
	OIDC     OIDC
	Console  Console
	Actors   Clients
	Domains  Domains
	Ordering domain.Ordering

	// Retention is how long dequeued events and closed bundles are stored. 0
	// means forever.
	Retention time.Duration

	Push    Push
	Broker  Broker
	Watches Watches
	Objects Objects
	Log     Log
	Limits  Limits

	file     string            // path of the configuration file; "" without a file
	from     map[string]source // where each value comes from, by key; defaults are not listed
	warnings []string
}

// TLS specifies the hub's certificate. Without a certificate, the hub serves
// plain HTTP.
type TLS struct {
	Certificate, Key string // PEM files
	ClientCA         string // PEM file with the authorities that sign client certificates; if "", client certificates are not requested
	Terminated       bool   // a gateway in front of the hub terminates TLS
}

// IsOn reports whether clients use TLS, terminated by the hub or by a gateway.
func (t *TLS) IsOn() bool { return t.Certificate != "" || t.Terminated }

// Cosmos specifies the Cosmos DB account. Without Endpoint, the node runs an
// embedded engine instead.
type Cosmos struct {
	Endpoint    string
	Key         Secret // for emulators; if "", azidentity's default credential is used
	Database    string
	Consistency string // consistency of reads; if "", the account's default is used
	TailEvents  int    // maximum number of events per cabinet that a recipient's head may contain; 0 for none
	SweepUnits  int    // maximum request units per second that all sweeps may consume
	IDMemory    Size   // memory for the ids of received events; one recipient may use up to half
}

// Survey limits the request units that the survey of mailboxes consumes.
type Survey struct {
	Units int // maximum request units per second; if 0, this node makes no survey
}

// An EmbeddedEngine configures the embedded bus or the embedded exchange.
type EmbeddedEngine struct {
	Key Secret // key with which domains authenticate; "" for the well-known key
}

// Admin contains the tokens with which operators authenticate.
type Admin struct {
	Token  Secret      // if "" and Tokens is empty, the node generates a token and stores it in Data
	Tokens AdminTokens // additional tokens with the same rights
}

// Console specifies how operators sign in to the web pages below /console/. A
// token of Admin is always sufficient.
type Console struct {
	ClientID     string // client id at the first issuer of OIDC; if "", operators cannot sign in with an issuer
	ClientSecret Secret // client secret at the issuer; "" for a public client
	SessionKey   Secret // secret from which the session key is derived; "" for Admin.Token
}

// A Domain configures an origin of events: one of the five domains of the
// energy market, or an additional one.
type Domain struct {
	Name    domain.Origin
	Group   domain.Group       // zero means the origin's default group or, if it has none, a separate group
	Content domain.ContentMode // content mode; "" for manifest
	Queues  contract.Queues    // names of the queues; empty names stand for default names, which contain the domain's name
	Ingest  string             // queue with sessions for events of only this origin; "" for none
}

// Domains lists domains in file order.
type Domains []Domain

// Log specifies what is logged, and in which format.
type Log struct {
	Level  slog.Level
	Format string // "text", "json" or "auto"; auto is text on a terminal, otherwise json
}

// Limits contains limits for one request, and for all requests together.
type Limits struct {
	RequestBody Size
	Payload     Size
	Content     Size // maximum size of the content that a domain produces for one bundle
	Events      int
	Waiting     int  // maximum number of Peeks that wait for data concurrently
	FreeDisk    Size // minimum free space on each disk of Data; below it, the node is not ready

	PayloadDepth  int // maximum nesting depth of a payload
	PayloadNumber int // maximum number of characters of a number in a payload

	BusConnections  int           // maximum number of connections to the embedded bus; a quarter is reserved for the node itself
	BusBuffer       Size          // maximum number of bytes that all connections to the embedded bus may buffer
	BusTokenTimeout time.Duration // time within which a connection to the embedded bus must present a valid token

	Bodies           Size // memory for large request bodies; if 0, the node chooses
	BodiesPerAddress Size // part of Bodies that one address may use; if 0, half
	Answers          Size // memory for large responses that clients are reading
	AnswersPerActor  Size // part of Answers that one actor may use; if 0, a third
	MinRate          Size // minimum rate, in bytes per second, at which a client must send or read

	Requests        int            // maximum HTTP requests per second of one client; 0 for no limit
	EventsPerSecond int            // maximum events per second that one client may send over HTTP; 0 for no limit
	TrustedProxies  []netip.Prefix // addresses of proxies whose X-Forwarded-For header is trusted

	Connections           int // maximum number of HTTP connections; if 0, the node chooses
	ConnectionsPerAddress int // part of Connections that one non-loopback address may use; if 0, half
}

// Default returns the settings of a node without configuration.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:8080",
		Data:   "messagehub-data",
		Cosmos: Cosmos{Database: "messagehub", TailEvents: 24, SweepUnits: 1000, IDMemory: 64 << 20},
		Survey: Survey{Units: 50},

		ServiceBus: ServiceBus{FIFO: "dataavailable-fifo", Plain: "dataavailable", Sessions: 64},
		BusListen:  "127.0.0.1:5672",
		Blob:       Blob{Container: "messagehub"},
		BlobListen: "127.0.0.1:10000",

		OIDC:     defaultOIDC(),
		Ordering: domain.ByCabinet,

		Retention: 7 * day,

		Push:    Push{Workers: 64, Concurrency: 16, Timeout: 30 * time.Second, Delays: defaultDelays(), SecretGrace: day},
		Broker:  defaultBroker(),
		Watches: defaultWatches(),
		Objects: defaultObjects(),

		Log: Log{Level: slog.LevelInfo, Format: "auto"},
		Limits: Limits{
			RequestBody: 32 << 20, Payload: 1 << 20, Content: 64 << 20, Events: 10_000, Waiting: 10_000, FreeDisk: 64 << 20,
			PayloadDepth: 64, PayloadNumber: 400,
			BusConnections: 1000, BusBuffer: 128 << 20, BusTokenTimeout: 10 * time.Second,
			Answers: 72 << 20, MinRate: 4 << 10,
		},
	}
}

// HasOperatorListener reports whether operators have a separate listener.
func (c *Config) HasOperatorListener() bool { return c.AdminListen != "" && c.AdminListen != c.Listen }

// Embedded reports whether the node stores documents in an embedded engine,
// instead of a Cosmos DB account.
func (c *Config) Embedded() bool { return c.Cosmos.Endpoint == "" }

// UsesFolder reports whether the node itself stores data, in Data or in memory.
func (c *Config) UsesFolder() bool { return c.Embedded() || c.EmbeddedBus() || c.EmbeddedBlob() }

// Groups returns the default groups, with the changes and additions of Domains.
func (c *Config) Groups() domain.Groups {
	groups := domain.DefaultGroups()
	for _, d := range c.Domains {
		group := d.Group
		if group == (domain.Group{}) {
			group, _ = groups.GroupOf(d.Name) // the zero Group, if no default group contains this origin; it stands for a separate group
		}
		groups = groups.With(d.Name, group)
	}
	return groups
}

// Content returns the content mode of each origin, except for the mode
// manifest.
func (c *Config) Content() map[domain.Origin]domain.ContentMode {
	modes := make(map[domain.Origin]domain.ContentMode)
	for _, d := range c.Domains {
		modes[d.Name] = cmp.Or(d.Content, domain.Manifest)
	}
	return modes
}

// A Secret is a text that must not be printed. It is formatted as [redacted];
// only Reveal returns the text.
type Secret string

const redacted = "[redacted]"

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns "[redacted]", or "" if the secret is empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Warnings returns problems of a valid configuration that an operator should
// fix.
func (c *Config) Warnings() []string { return c.warnings }

// LogValue returns the keys whose values are not the defaults. Secrets are
// redacted.
func (c Config) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, len(keys))
	for _, k := range keys {
		if c.IsDefault(k.name) {
			continue
		}
		attrs = append(attrs, slog.String(strings.NewReplacer(".", "_", "-", "_").Replace(k.name), c.shownValue(k)))
	}
	return slog.GroupValue(attrs...)
}

// String returns one line for each key, with its value and the value's source.
// Secrets are redacted.
func (c Config) String() string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k.name + " = " + c.shownValue(k) + " (" + c.source(k.name) + ")\n")
	}
	return b.String()
}
