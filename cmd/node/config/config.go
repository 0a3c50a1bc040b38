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

// A Config contains all settings of a node. A Config that Load returns is valid.
type Config struct {
	Listen      string // HOST:PORT
	TLS         TLS
	AdminListen string // HOST:PORT for operators and their tools; "" or the same as Listen for a single listener, which is the default
	Data        string // data folder
	InMemory    bool
	Insecure    bool          // accept requests from other machines although actors are not authenticated
	DrainDelay  time.Duration // time for which a stopping hub still serves requests while /readyz returns 503
	Production  bool          // refuse keys of Azure accounts and identities of developers
	Cosmos      Cosmos
	Survey      Survey

	ServiceBus ServiceBus
	BusListen  string // HOST:PORT at which the embedded bus listens for domains; "" for no listener
	Bus        EmbeddedEngine
	Blob       Blob
	BlobListen string // HOST:PORT at which the embedded exchange listens for domains; "" for no listener
	Exchange   EmbeddedEngine

	SecretFiles SecretFiles // paths of files whose secrets Load reads

	Admin    Admin
	OIDC     OIDC
	Console  Console
	Actors   Clients
	Domains  Domains
	Ordering domain.Ordering

	// Retention is how long dequeued events and closed bundles are kept. 0
	// means forever.
	Retention time.Duration

	Push    Push
	Broker  Broker
	Watches Watches
	Objects Objects
	Log     Log
	Limits  Limits

	file     string            // path of the configuration file; "" for none
	from     map[string]source // sources of the values that are not defaults, by key
	warnings []string
}

// TLS contains the files of the hub's certificate. Without a certificate, the
// hub speaks plain HTTP.
type TLS struct {
	Certificate, Key string // PEM files
	ClientCA         string // PEM file with the authorities of client certificates; "" if clients are not asked for a certificate
	Terminated       bool   // true if a gateway in front of the hub terminates TLS
}

// IsOn reports whether clients use TLS, which the hub or a gateway terminates.
func (t *TLS) IsOn() bool { return t.Certificate != "" || t.Terminated }

// Cosmos specifies the Cosmos DB account. Without Endpoint, the node runs an
// embedded engine.
type Cosmos struct {
	Endpoint    string
	Key         Secret // for emulators; "" for the default credential of azidentity
	Database    string
	Consistency string // "" for the consistency that the account reports
	TailEvents  int    // maximum number of events of a cabinet in the head of a recipient; 0 for none
	SweepUnits  int    // maximum request units per second that sweeps of the account may consume
	IDMemory    Size   // memory for the ids of received events; one recipient may use up to half of it
}

// Survey limits the cost of the survey of mailboxes.
type Survey struct {
	Units int // maximum request units per second; with 0, this node makes no survey
}

// An EmbeddedEngine contains the settings of the embedded bus, or of the embedded
// exchange.
type EmbeddedEngine struct {
	Key Secret // key that the domains use; "" for the well-known key
}

// Admin contains the tokens of operators.
type Admin struct {
	Token  Secret      // "" if the node generates a token and stores it in Data; it generates none if Tokens is not empty
	Tokens AdminTokens // further tokens, with the same rights
}

// Console specifies how operators sign in to the web pages below /console/. They
// can always sign in with a token of Admin.
type Console struct {
	ClientID     string // id of the client at the first issuer of OIDC; "" if operators cannot sign in with an issuer
	ClientSecret Secret // "" for a public client
	SessionKey   Secret // secret from which the key of sessions is derived; "" for Admin.Token
}

// A Domain configures an origin of events: one of the five of the energy market,
// or a further one.
type Domain struct {
	Name    domain.Origin
	Group   domain.Group       // zero for the default group of the origin or, if it has none, a separate group
	Content domain.ContentMode // "" for manifest
	Queues  contract.Queues    // empty names stand for the default names, which contain the name of the domain
	Ingest  string             // queue with sessions that contains only events of this origin; "" for none
}

// Domains are the domains in the order of the file.
type Domains []Domain

// Log specifies what is logged, and in which format.
type Log struct {
	Level  slog.Level
	Format string // text, json, or auto: text on a terminal, and otherwise json
}

// Limits are the limits of one request, and of all requests together.
type Limits struct {
	RequestBody Size
	Payload     Size
	Content     Size // size of the content that a domain produces for one bundle
	Events      int
	Waiting     int  // number of Peeks that wait for data at the same time
	FreeDisk    Size // free space on each disk of Data, below which the node is not ready

	PayloadDepth  int // levels of nesting in a payload
	PayloadNumber int // number of characters of a number in a payload

	BusConnections  int           // number of connections to the embedded bus; a quarter is reserved for the node itself
	BusBuffer       Size          // bytes that all connections to the embedded bus may buffer together
	BusTokenTimeout time.Duration // time within which a connection to the embedded bus must present a valid token

	Bodies           Size // memory for large request bodies; with 0, the node chooses
	BodiesPerAddress Size // part of Bodies for one address; 0 for a half
	Answers          Size // memory for large responses while clients read them
	AnswersPerActor  Size // part of Answers for one actor; 0 for a third
	MinRate          Size // minimum bytes per second that a client must send or read

	Requests        int            // HTTP requests of one client per second; 0 for no limit
	EventsPerSecond int            // events of one client per second over HTTP; 0 for no limit
	TrustedProxies  []netip.Prefix // addresses of proxies whose X-Forwarded-For header is trusted

	Connections           int // number of HTTP connections; with 0, the node chooses
	ConnectionsPerAddress int // part of Connections for one address that is not a loopback address; 0 for a half
}

// Default returns the settings of a node without any configuration.
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

// Embedded reports whether the node runs an embedded engine.
func (c *Config) Embedded() bool { return c.Cosmos.Endpoint == "" }

// UsesFolder reports whether the node stores any data itself, in Data or in
// memory.
func (c *Config) UsesFolder() bool { return c.Embedded() || c.EmbeddedBus() || c.EmbeddedBlob() }

// Groups returns the groups of the energy market with the changes and additions
// of Domains.
func (c *Config) Groups() domain.Groups {
	groups := domain.DefaultGroups()
	for _, d := range c.Domains {
		group := d.Group
		if group == (domain.Group{}) {
			group, _ = groups.GroupOf(d.Name) // the zero Group, which stands for a separate group, if no default group has this origin
		}
		groups = groups.With(d.Name, group)
	}
	return groups
}

// Content returns the content mode of each origin whose mode is not manifest.
func (c *Config) Content() map[domain.Origin]domain.ContentMode {
	modes := make(map[domain.Origin]domain.ContentMode)
	for _, d := range c.Domains {
		modes[d.Name] = cmp.Or(d.Content, domain.Manifest)
	}
	return modes
}

// A Secret is a text that must not be shown. It is printed as [redacted]; only
// Reveal returns the text.
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

// Warnings returns the problems of a valid configuration that an operator should correct.
func (c *Config) Warnings() []string { return c.warnings }

// LogValue returns a group of the keys whose values differ from the defaults. It
// redacts secrets.
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

// String returns one line for each key, with the value and its source. It
// redacts secrets.
func (c Config) String() string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k.name + " = " + c.shownValue(k) + " (" + c.source(k.name) + ")\n")
	}
	return b.String()
}
