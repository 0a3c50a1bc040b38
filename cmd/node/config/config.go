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

// A Config holds all settings of a node. One that Load has returned is valid.
type Config struct {
	Listen      string // HOST:PORT
	TLS         TLS
	AdminListen string // HOST:PORT for operators and their tools; "" or Listen: all is on Listen, as Default has it
	Data        string // folder
	InMemory    bool
	Insecure    bool          // listen to others than this machine, though nothing proves who an actor is
	DrainDelay  time.Duration // for which a hub that stops still answers requests, while it is not ready
	Production  bool          // no key of Azure is used, and no identity of a developer
	Cosmos      Cosmos
	Survey      Survey

	ServiceBus ServiceBus
	BusListen  string // HOST:PORT at which domains reach the bus of this node; "": nowhere
	Bus        OwnEngine
	Blob       Blob
	BlobListen string // HOST:PORT at which domains reach the exchange of this node; "": nowhere
	Exchange   OwnEngine

	SecretFiles SecretFiles // which Load has read

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

	file     string            // that was read; "": none
	from     map[string]source // of the keys that are not defaults
	warnings []string
}

// TLS says which certificate the hub has. Without one it speaks plain HTTP.
type TLS struct {
	Certificate, Key string // PEM files
	ClientCA         string // PEM file with the authorities of client certificates; "": none is asked for
	Terminated       bool   // a gateway in front of the hub has TLS
}

// IsOn reports whether clients reach the hub over TLS, its own or that of a gateway.
func (t *TLS) IsOn() bool { return t.Certificate != "" || t.Terminated }

// Cosmos says where the account is. Without an Endpoint the node runs an engine
// of its own.
type Cosmos struct {
	Endpoint    string
	Key         Secret // for emulators; without it, the default credential of azidentity
	Database    string
	Consistency string // "" means what the account says of itself
	TailEvents  int    // how many events of a kind may stay in the head of a recipient; 0: none
	SweepUnits  int    // request units a second that a sweep takes of an account, at most
	IDMemory    Size   // bytes for the ids of received events, of which one recipient gets up to a half
}

// Survey says what the survey of mailboxes may cost.
type Survey struct {
	Units int // request units a second, at most; 0: this node does not survey
}

// An OwnEngine is the bus, or the exchange, of a node that has its own.
type OwnEngine struct {
	Key Secret // of the domains; "": the well-known one
}

// Admin says who may operate the hub over HTTP.
type Admin struct {
	Token  Secret      // "": the node makes one, and keeps it in Data, unless there are Tokens
	Tokens AdminTokens // each of them counts as Token does
}

// Console says how operators sign in to the pages at /console/, besides by a token of Admin.
type Console struct {
	ClientID     string // at the first issuer of OIDC; "": operators do not sign in there
	ClientSecret Secret // "": the client is a public one
	SessionKey   Secret // from which the key of sessions is derived; "": from Admin.Token
}

// A Domain is an origin of events that the configuration names, on top of the five of the energy
// market.
type Domain struct {
	Name    domain.Origin
	Group   domain.Group       // zero: its default one, else a group of its own
	Content domain.ContentMode // "": manifest
	Queues  contract.Queues    // "": named after it
	Ingest  string             // queue with sessions by which events of this origin alone come; "": none
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
	Content     Size // that a domain makes for one bundle
	Events      int
	Waiting     int  // Peeks that wait for data at the same time
	FreeDisk    Size // the node is not ready while a disk of Data has less free

	PayloadDepth  int // levels of nesting in a payload
	PayloadNumber int // characters of a number in a payload

	BusConnections  int           // to the embedded bus; a quarter is kept for the node itself
	BusBuffer       Size          // bytes that all connections to the embedded bus may buffer together
	BusTokenTimeout time.Duration // a connection to the embedded bus must present a valid token within that time

	Bodies           Size // of large request bodies in memory; 0: the node chooses
	BodiesPerAddress Size // of these, from one address; 0: half of them
	Answers          Size // that large answers take in memory while they are read
	AnswersPerActor  Size // of these, for one actor; 0: a third of them
	MinRate          Size // in a second, that a client has to send or read

	Requests        int            // of one client over HTTP in a second; 0: no limit
	EventsPerSecond int            // of one client over HTTP; 0: no limit
	TrustedProxies  []netip.Prefix // whose X-Forwarded-For says which address a client has

	Connections           int // over HTTP; 0: the node chooses
	ConnectionsPerAddress int // of these, from one address other than loopback; 0: half of them
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

// HasOperatorListener reports whether operators have a listener of their own.
func (c *Config) HasOperatorListener() bool { return c.AdminListen != "" && c.AdminListen != c.Listen }

// Embedded reports whether the node runs an engine of its own.
func (c *Config) Embedded() bool { return c.Cosmos.Endpoint == "" }

// UsesFolder reports whether the node keeps anything of its own, in Data or in
// memory.
func (c *Config) UsesFolder() bool { return c.Embedded() || c.EmbeddedBus() || c.EmbeddedBlob() }

// Groups returns the groups of the energy market, changed and extended by the
// Domains.
func (c *Config) Groups() domain.Groups {
	groups := domain.DefaultGroups()
	for _, d := range c.Domains {
		group := d.Group
		if group == (domain.Group{}) {
			group, _ = groups.Of(d.Name) // the zero Group if there is none, and then one of its own
		}
		groups = groups.With(d.Name, group)
	}
	return groups
}

// Content returns the content mode of the origins that are not manifest.
func (c *Config) Content() map[domain.Origin]domain.ContentMode {
	modes := make(map[domain.Origin]domain.ContentMode)
	for _, d := range c.Domains {
		modes[d.Name] = cmp.Or(d.Content, domain.Manifest)
	}
	return modes
}

// A Secret is a text that must not be seen. Reveal is the one way to it.
type Secret string

const redacted = "[redacted]"

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret; an empty one may be seen to be empty.
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

// LogValue is a group of the keys whose values differ from their defaults, secrets hidden.
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

// String is one line a key: the value, secrets hidden, and where it came from.
func (c Config) String() string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k.name + " = " + c.shownValue(k) + " (" + c.source(k.name) + ")\n")
	}
	return b.String()
}
