package deployment

import (
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// A DataRole is a custom role for the data plane of Cosmos DB.
type DataRole struct {
	Name    string   `json:"name"`
	Actions []string `json:"dataActions"`
}

// hubDataRole contains the actions that the hub needs in Cosmos DB. The hub
// reads container properties, reads, writes and queries documents, and reads
// the change feed. A patch requires the actions for reading and for replacing.
// The hub uses no stored procedures and no conflict feed.
var hubDataRole = DataRole{
	Name: "MessageHub",
	Actions: []string{
		"Microsoft.DocumentDB/databaseAccounts/readMetadata",
		"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery",
		"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create",
		"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete",
		"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read",
		"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace",
		"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/upsert",
		"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed",
	},
}

// A Role is a built-in Azure role or the DataRole of a Table.
type Role struct {
	Name string `json:"name"`
	ID   string `json:"id,omitempty"` // identical in every tenant; "" for the DataRole of the Table
}

// Built-in roles that identities need.
var (
	Receiver        = Role{"Azure Service Bus Data Receiver", "4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0"}
	Sender          = Role{"Azure Service Bus Data Sender", "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39"}
	BlobContributor = Role{"Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"}
	BlobDelegator   = Role{"Storage Blob Delegator", "db58b8e5-c6ad-4a2a-8342-4190687cbf4a"}
)

// An Identity is a principal to which roles are granted.
type Identity struct {
	Name   string        `json:"name"`
	Use    string        `json:"use"`
	Domain domain.Origin `json:"-"` // zero for the hub's and the scaler's identities, which a template creates
}

// Names of identities that do not belong to a domain.
const (
	Hub    = "hub"
	Scaler = "scaler"
)

// domainIdentity returns the name of the identity of a domain.
func domainIdentity(origin domain.Origin) string { return "domain:" + origin.String() }

func identitiesOf(cfg *config.Config) []Identity {
	all := []Identity{
		{Name: Hub, Use: "every node of the hub"},
		{Name: Scaler, Use: "KEDA, which counts the events that wait"},
	}
	for _, origin := range cfg.Groups().Origins() {
		all = append(all, Identity{Name: domainIdentity(origin), Use: "the domain " + origin.String(), Domain: origin})
	}
	return all
}

// A ScopeKind is the kind of resource to which a role is limited.
type ScopeKind string

// Kinds of scopes.
const (
	DatabaseScope      ScopeKind = "cosmos database"
	QueueScope         ScopeKind = "servicebus queue"
	BlobContainerScope ScopeKind = "blob container"
	StorageScope       ScopeKind = "storage account"
)

// A Scope is the resource to which a role is limited.
type Scope struct {
	Kind ScopeKind `json:"kind"`
	Name string    `json:"name,omitempty"` // name of the resource; "" for the template's account
}

// A Grant grants a role to an identity, within a scope.
type Grant struct {
	Identity string `json:"identity"` // name of the identity
	Role     Role   `json:"role"`
	Scope    Scope  `json:"scope"`
	Why      string `json:"why"`
}

func grantsOf(cfg *config.Config) []Grant {
	var all []Grant
	grant := func(identity string, role Role, kind ScopeKind, name, why string) {
		if name != "" || kind == StorageScope {
			all = append(all, Grant{identity, role, Scope{kind, name}, why})
		}
	}
	queue := func(identity string, role Role, name, why string) { grant(identity, role, QueueScope, name, why) }
	queues, origins := cfg.Queues(), cfg.Groups().Origins()

	grant(Hub, Role{Name: hubDataRole.Name}, DatabaseScope, cfg.Cosmos.Database, "it reads and writes all documents")
	for _, b := range Blobs(cfg) {
		grant(Hub, BlobContributor, BlobContainerScope, b.Name, "it reads, writes, lists and deletes "+b.Use)
	}
	grant(Hub, BlobDelegator, StorageScope, "", "it signs links to objects in its containers")
	intake := func(name, why string) {
		queue(Hub, Receiver, name, why)
		queue(Hub, Sender, name, "it sends dead letters again when an operator orders it")
	}
	intake(cfg.ServiceBus.FIFO, "it receives events")
	intake(cfg.ServiceBus.Plain, "it receives events")
	intake(cfg.Objects.Queue, "it receives events of objects")
	ingest := make(map[domain.Origin]string)
	for _, d := range cfg.Domains {
		ingest[d.Name] = d.Ingest
		intake(d.Ingest, "it receives events")
	}
	for _, origin := range origins {
		queue(Hub, Sender, queues[origin].Request, "it asks for content")
		queue(Hub, Receiver, queues[origin].Reply, "it receives answers")
		queue(Hub, Sender, queues[origin].Dequeue, "it sends notices")
	}

	queue(Scaler, Receiver, cfg.ServiceBus.FIFO, "it reads the number of messages")
	queue(Scaler, Receiver, cfg.ServiceBus.Plain, "it reads the number of messages")

	for _, origin := range origins {
		d := domainIdentity(origin)
		if own := ingest[origin]; own != "" {
			queue(d, Sender, own, "it announces events")
		} else {
			queue(d, Sender, cfg.ServiceBus.FIFO, "it announces events")
			queue(d, Sender, cfg.ServiceBus.Plain, "it announces events")
		}
		queue(d, Receiver, queues[origin].Request, "it receives requests for content")
		queue(d, Sender, queues[origin].Reply, "it answers requests")
		queue(d, Receiver, queues[origin].Dequeue, "it receives notices")
		grant(d, BlobContributor, BlobContainerScope, cfg.Blob.ExchangeContainer(), "it reads ids of events, and writes content")
	}
	return all
}
