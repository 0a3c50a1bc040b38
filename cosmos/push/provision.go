package push

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
)

// CheckContainers reads the properties of both containers and returns an error that lists all deviations;
// see [client.Client.CheckContainers].
func (s *Store) CheckContainers(ctx context.Context) error { return s.client.CheckContainers(ctx) }

// Provision creates and corrects the containers according to opts; see [client.Client.Provision].
func (s *Store) Provision(ctx context.Context, opts client.ProvisionOptions) ([]client.Provisioned, error) {
	return s.client.Provision(ctx, opts)
}
