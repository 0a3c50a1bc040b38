package node

import (
	"context"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

// ProvisionOptions say what Provision does.
type ProvisionOptions struct {
	CheckOnly   bool // create and change nothing
	NarrowIndex bool // remove index paths that no query of the hub needs
	Throughput  bool // create Cosmos containers with the suggested throughput
	ListExtra   bool // also return queues that the hub does not need
}

// A Resource is one that a deployment needs, in the state in which Provision
// found or left it.
type Resource struct {
	Service  string // cosmos, blob or servicebus
	Kind     string // database, container or queue
	Name     string
	State    client.ProvisionState
	Changes  []string // what Provision has changed
	Notes    []string // what works but has a cost
	Left     []string // what is wrong or could not be done
	Commands []string // commands of the Azure CLI that do what is left
}

// Provision creates and corrects what cfg needs on Azure, as far as the
// credentials allow, and returns every resource. Embedded parts are left out:
// the node creates them itself.
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

// placeholder stands in a command for a value that is not in the settings.
const placeholder = "RESOURCE_GROUP"
