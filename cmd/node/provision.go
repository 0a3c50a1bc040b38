package node

import (
	"context"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

// ProvisionOptions select what Provision does.
type ProvisionOptions struct {
	CheckOnly   bool // create and change nothing
	NarrowIndex bool // remove index paths that no query of the hub uses
	Throughput  bool // create Cosmos containers with the suggested throughput
	ListExtra   bool // also return queues that the hub does not need
}

// A Resource is a resource on Azure that the hub needs, in the state after
// Provision.
type Resource struct {
	Service  string // cosmos, blob or servicebus
	Kind     string // database, container or queue
	Name     string
	State    client.ProvisionState
	Changes  []string // changes that Provision made
	Notes    []string // differences that do not stop the hub, but have a cost
	Left     []string // faults that remain
	Commands []string // commands of the Azure CLI that repair the remaining faults
}

// Provision creates and corrects the resources that cfg needs on Azure, as far
// as the credentials permit, and returns all of them. It skips embedded parts,
// which the node creates itself.
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

// placeholder replaces a value in a command that the settings do not contain.
const placeholder = "RESOURCE_GROUP"
