package node

import (
	"context"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

// ProvisionOptions configure Provision.
type ProvisionOptions struct {
	CheckOnly   bool // CheckOnly creates and changes nothing
	NarrowIndex bool // NarrowIndex removes index paths that no query of the hub uses
	Throughput  bool // Throughput creates Cosmos containers with the recommended throughput
	ListExtra   bool // ListExtra also returns queues that the hub does not need
}

// A Resource is an Azure resource that the hub needs. It describes the state
// after Provision.
type Resource struct {
	Service  string // cosmos, blob or servicebus
	Kind     string // database, container or queue
	Name     string
	State    client.ProvisionState
	Changes  []string // changes made by Provision
	Notes    []string // differences that have a cost, but do not stop the hub
	Left     []string // remaining faults
	Commands []string // Azure CLI commands that repair the remaining faults
}

// Provision creates and corrects the Azure resources that cfg needs, as far as
// the credentials permit, and returns all of them. It skips embedded parts,
// which the node itself creates.
func Provision(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts Options) ([]Resource, error) {
	opts.setConnections(cfg)
	defer opts.network.close()
	var all []Resource
	if !cfg.Embedded() {
		found, err := provisionCosmos(ctx, cfg, po, &opts)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if !cfg.EmbeddedBlob() {
		for _, container := range deployment.Blobs(cfg) {
			found, err := provisionBlobs(ctx, cfg, po, &opts, container.Name)
			if err != nil {
				return nil, err
			}
			all = append(all, found)
		}
	}
	if !cfg.EmbeddedBus() {
		found, err := provisionQueues(ctx, cfg, po, &opts)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// placeholder replaces a value that the settings do not contain in a command.
const placeholder = "RESOURCE_GROUP"
