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

// A Config has all settings of a node. A Config from Load is valid.
type Config struct {
	Listen      string // HOST:PORT
	TLS         TLS
	AdminListen string // HOST:PORT for operators and their tools; "" or the same as Listen: there is one listener, as in Default
	Data        string // data folder
	InMemory    bool
	Insecure    bool          // allow other machines although nothing proves who an actor is
	DrainDelay  time.Duration // how long a hub that stops still answers requests while it is not ready
	Production  bool          // refuse keys of Azure accounts and identities of developers
	Cosmos      Cosmos
	Survey      Survey

	ServiceBus ServiceBus
	BusListen  string // HOST:PORT at which domains reach the embedded bus; "": no listener
	Bus        OwnEngine
	Blob       Blob
	BlobListen string // HOST:PORT at which domains reach the embedded exchange; "": no listener
	Exchange   OwnEngine

	SecretFiles SecretFiles // files that Load has read

	Admin    Admin
	OIDC     OIDC
	Console  Console
	Actors   Clients
	Domains  Domains
	Ordering domain.Ordering

	// Retention is how long acknowledged events and closed bundles are kept; 0
	// means for ever.
	Retention time.Duration

	Push    Push
	Broker  Broker
	Watches Watches
	Objects Objects
	Log     Log
	Limits  Limits

	file     string            // path of the file that was read; "": none
	from     map[string]source // sources of the values that are not defaults
	warnings []string
}

// TLS has the certificate of the hub. Without one the hub speaks plain HTTP.
type TLS struct {
	Certificate, Key string // PEM files
	ClientCA         string // PEM file with the authorities of client certificates; "": clients are not asked for one
	Terminated       bool   // a gateway in front of the hub has TLS
}

// IsOn reports whether clients reach the hub over TLS, terminated by the hub or
// by a gateway.
func (t *TLS) IsOn() bool { return t.Certificate != "" || t.Terminated }

// Cosmos says where the account is. Without an Endpoint the node runs an
// embedded engine.
type Cosmos struct {
	Endpoint    string
	Key         Secret // for emulators; without it, the default credential of azidentity
	Database    string
	Consistency string // "": the consistency that the account reports
	TailEvents  int    // maximum number of events of a kind in the head of a recipient; 0: none
	SweepUnits  int    // maximum request units per second of a sweep of an account
	IDMemory    Size   // bytes for the ids of received events, of which one recipient gets up to half
}

// Survey has the costs of the survey of mailboxes.
type Survey struct {
	Units int // maximum request units per second; 0: this node does not survey
}

// An OwnEngine has the settings of the embedded bus, or of the embedded
// exchange.
type OwnEngine struct {
	Key Secret // key of the domains; "": the well-known one
}

// Admin has the tokens of operators.
type Admin struct {
	Token  Secret      // "": the node generates one and stores it in Data, unless there are Tokens
	Tokens AdminTokens // further tokens with the same rights
}

// Console says how operators sign in to the pages at /console/, in addition to
// a token of Admin.
type Console struct {
	ClientID     string // client at the first issuer of OIDC; "": operators do not sign in there
	ClientSecret Secret // "": the client is a public one
	SessionKey   Secret // secret from which the key of sessions is derived; "": Admin.Token
}

// A Domain is an origin of events in the configuration, in addition to the five
// of the energy market.
type Domain struct {
	Name    domain.Origin
	Group   domain.Group       // zero: the default group of the origin, otherwise a separate group
	Content domain.ContentMode // "": manifest
	Queues  contract.Queues    // "": named after the domain
	Ingest  string             // queue with sessions for events of this origin only; "": none
}

// Domains are in the order of the file.
type Domains []Domain

// Log says what is logged and how.
type Log struct {
	Level  slog.Level
	Format string // auto (text for a terminal, else json), text or json
}

// Limits of one request, and of all requests together.
type Limits struct {
	RequestBody Size
	Payload     Size
	Content     Size // content that a domain makes for one bundle
	Events      int
	Waiting     int  // Peeks that wait for data at the same time
	FreeDisk    Size // the node is not ready while a disk of Data has less free space

	PayloadDepth  int // levels of nesting in a payload
	PayloadNumber int // characters of a number in a payload

	BusConnections  int           // connections to the embedded bus; a quarter is reserved for the node itself
	BusBuffer       Size          // bytes that all connections to the embedded bus together may buffer
	BusTokenTimeout time.Duration // time in which a connection to the embedded bus must present a valid token

	Bodies           Size // memory of large request bodies; 0: the node chooses
	BodiesPerAddress Size // part of Bodies for one address; 0: half
	Answers          Size // memory of large answers while their clients read
	AnswersPerActor  Size // part of Answers for one actor; 0: a third
	MinRate          Size // bytes per second that a client has to send or read

	Requests        int            // HTTP requests of one client per second; 0: no limit
	EventsPerSecond int            // events of one client per second over HTTP; 0: no limit
	TrustedProxies  []netip.Prefix // proxies whose X-Forwarded-For is trusted

	Connections           int // HTTP connections; 0: the node chooses
	ConnectionsPerAddress int // part of Connections for one address other than loopback; 0: half
}

// Default returns the settings of a node that is not configured.
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

// UsesFolder reports whether the node stores anything itself, in Data or in
// memory.
func (c *Config) UsesFolder() bool { return c.Embedded() || c.EmbeddedBus() || c.EmbeddedBlob() }

// Groups returns the groups of the energy market, changed and extended by the
// Domains.
func (c *Config) Groups() domain.Groups {
	groups := domain.DefaultGroups()
	for _, d := range c.Domains {
		group := d.Group
		if group == (domain.Group{}) {
			group, _ = groups.Of(d.Name) // the zero Group if none has this origin; then the domain gets a separate one
		}
		groups = groups.With(d.Name, group)
	}
	return groups
}

// Content returns the content mode of the origins whose mode is not manifest.
func (c *Config) Content() map[domain.Origin]domain.ContentMode {
	modes := make(map[domain.Origin]domain.ContentMode)
	for _, d := range c.Domains {
		modes[d.Name] = cmp.Or(d.Content, domain.Manifest)
	}
	return modes
}

// A Secret is a text that must not be shown. Only Reveal returns it.
type Secret string

const redacted = "[redacted]"

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret. It shows whether the secret is empty.
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

// LogValue returns a group of the keys whose values differ from their defaults.
// Secrets are hidden.
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

// String returns one line for each key: the value and its source. Secrets are
// hidden.
func (c Config) String() string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k.name + " = " + c.shownValue(k) + " (" + c.source(k.name) + ")\n")
	}
	return b.String()
}
