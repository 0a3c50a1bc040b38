package deployment

import (
	"encoding/json"
	"slices"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
)

// A Table lists the Azure resources that hubs with the same configuration need.
type Table struct {
	Database   string
	Containers []client.ContainerSpec
	DataRole   DataRole
	Queues     []Queue
	Blobs      []BlobContainer
	Identities []Identity
	Grants     []Grant
}

// A BlobContainer is a private blob container.
type BlobContainer struct {
	Name string `json:"name"`
	Use  string `json:"use"`

	// DeleteAfterDays is the number of days without a change after which a
	// lifecycle rule of the account deletes a blob. It is 0 if no rule is
	// needed, because the hub deletes the blobs.
	DeleteAfterDays int `json:"deleteAfterDays,omitempty"`
}

// NewTable returns the table for hubs with this configuration. It lists all
// three services, even those that such hubs embed.
func NewTable(cfg *config.Config) Table {
	return Table{
		Database:   cfg.Cosmos.Database,
		Containers: Containers(),
		DataRole:   hubDataRole,
		Queues:     Queues(cfg),
		Blobs:      Blobs(cfg),
		Identities: identitiesOf(cfg),
		Grants:     grantsOf(cfg),
	}
}

// Containers returns all Cosmos containers that a hub needs. The containers of
// events and bundles precede the optional ones, which contain subscriptions,
// calls and objects.
func Containers() []client.ContainerSpec {
	return slices.Concat(cosmos.Containers(), pushstore.Containers(), objectstore.Containers())
}

// exchangeDays is how long a blob remains in the exchange container if neither
// the hub nor a domain deletes it. Such a blob belongs to a content request,
// which lasts only seconds.
const exchangeDays = 30

// Blobs returns all blob containers that a hub needs.
func Blobs(cfg *config.Config) []BlobContainer {
	return []BlobContainer{
		{Name: cfg.Blob.ContentContainer(), Use: "payloads, and the content of bundles"},
		{Name: cfg.Blob.ExchangeContainer(), Use: "what the hub and the domains exchange", DeleteAfterDays: exchangeDays},
	}
}

// tableFormat is the format version of the JSON document that MarshalJSON
// returns.
const tableFormat = 1

// A containerDocument describes a Cosmos container in a table's JSON document.
type containerDocument struct {
	Name             string   `json:"name"`
	Holds            string   `json:"holds"`
	PartitionKey     string   `json:"partitionKey"`
	KeyVersion       int      `json:"partitionKeyVersion"`
	IndexPaths       []string `json:"indexPaths"`
	DefaultTTL       *int     `json:"defaultTtl"`
	AutoscaleMaximum int32    `json:"autoscaleMaximum"`
}

// MarshalJSON returns the table as a JSON document for other programs.
func (t Table) MarshalJSON() ([]byte, error) {
	onlyWhereSet := -1
	containers := make([]containerDocument, len(t.Containers))
	for i := range t.Containers {
		c := &t.Containers[i]
		containers[i] = containerDocument{
			Name: c.Name, Holds: c.Holds, PartitionKey: c.PartitionKey, KeyVersion: 2,
			IndexPaths: c.IndexPaths(), AutoscaleMaximum: c.Throughput,
		}
		if c.Expires {
			containers[i].DefaultTTL = &onlyWhereSet
		}
	}
	type cosmosDocument struct {
		Database   string              `json:"database"`
		Containers []containerDocument `json:"containers"`
		DataRole   DataRole            `json:"dataRole"`
	}
	type busDocument struct {
		Queues []Queue `json:"queues"`
	}
	type storageDocument struct {
		Containers []BlobContainer `json:"containers"`
	}
	return json.Marshal(struct {
		Format     int             `json:"format"`
		Cosmos     cosmosDocument  `json:"cosmos"`
		ServiceBus busDocument     `json:"serviceBus"`
		Storage    storageDocument `json:"storage"`
		Identities []Identity      `json:"identities"`
		Roles      []Grant         `json:"roles"`
	}{
		tableFormat, cosmosDocument{t.Database, containers, t.DataRole}, busDocument{t.Queues}, storageDocument{t.Blobs}, t.Identities, t.Grants,
	})
}
