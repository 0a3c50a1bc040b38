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

// A Table contains the Azure resources that hubs with one configuration need.
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

	// DeleteAfterDays is the age, in days since its last change, at which a
	// lifecycle rule of the account deletes a blob. It is 0 if no rule is
	// needed, because the hub itself deletes the blobs of the container.
	DeleteAfterDays int `json:"deleteAfterDays,omitempty"`
}

// NewTable returns the table for hubs with a configuration. It includes all
// three services, even those that such hubs would embed.
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

// Containers returns the Cosmos containers that a hub needs. The containers of
// events and bundles come first; the others, for subscriptions, calls and
// objects, are optional.
func Containers() []client.ContainerSpec {
	return slices.Concat(cosmos.Containers(), pushstore.Containers(), objectstore.Containers())
}

// exchangeDays is how long the exchange container keeps a blob that neither the
// hub nor a domain deletes. Such blobs belong to content requests, which last
// only seconds.
const exchangeDays = 30

// Blobs returns the blob containers that a hub needs.
func Blobs(cfg *config.Config) []BlobContainer {
	return []BlobContainer{
		{Name: cfg.Blob.ContentContainer(), Use: "payloads, and the content of bundles"},
		{Name: cfg.Blob.ExchangeContainer(), Use: "what the hub and the domains exchange", DeleteAfterDays: exchangeDays},
	}
}

// tableFormat is the version of the JSON document that MarshalJSON returns.
const tableFormat = 1

// A containerDocument is a Cosmos container in the JSON document.
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
