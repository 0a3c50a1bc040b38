package objects

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
)

// CheckContainers reads the properties of the container and returns what is wrong with them; see
// [client.Client.CheckContainers].
func (s *Store) CheckContainers(ctx context.Context) error { return s.client.CheckContainers(ctx) }

// Provision creates and corrects what opts ask for; see [client.Client.Provision].
func (s *Store) Provision(ctx context.Context, opts client.ProvisionOptions) ([]client.Provisioned, error) {
	return s.client.Provision(ctx, opts)
}
