package market

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/service"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
)

// startHub starts the hub on containers with their throughput, and returns the lines
// over which it reaches the account.
func (m *Market) startHub(ctx context.Context, a *account.Account, database, folder string) (*service.Service, lines, error) {
	if err := provisionContainers(ctx, a, database, m.Throughput); err != nil {
		return nil, lines{}, err
	}
	ways := newLines(a)
	var transport policy.Transporter = ways
	if m.Around != nil {
		transport = m.Around(transport)
	}
	o := service.Options{Account: a, Database: database, Transport: transport, Folder: folder}
	if m.Issuer != nil {
		o.Configure = m.Issuer.Trust
	}
	hub, err := service.Start(ctx, o)
	return hub, ways, err
}

// provisionContainers creates missing containers, and sets their throughput.
func provisionContainers(ctx context.Context, a *account.Account, database string, t Throughput) error {
	db, err := client.Connect(a.Connection(a.Unmetered(), database))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Provision(ctx, cosmos.Containers()); err != nil {
		return err
	}
	return a.Raise(ctx, database, map[string]int32{"catalog": t.Catalog, "cabinet": t.Cabinet, "bundles": t.Bundles})
}
