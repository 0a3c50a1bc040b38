package market

import (
	"context"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
)

// A service is a whole node as it ships, at work until it is stopped.
type service struct {
	url   string
	lines lines
	stop  func() error
}

// serve starts a service on containers that have their throughput.
func (m *Market) serve(ctx context.Context, a *account.Account, database, folder string) (*service, error) {
	if err := provision(ctx, a, database, m.Throughput); err != nil {
		return nil, err
	}
	s := &service{lines: newLines(a)}
	var transport policy.Transporter = s.lines
	if m.Around != nil {
		transport = m.Around(transport)
	}
	hub, err := node.Open(ctx, settings(a, database, folder), node.Options{Transport: transport})
	if err != nil {
		return nil, err
	}
	s.url = hub.URL()
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	var life sync.WaitGroup
	var ended error
	life.Go(func() { ended = hub.Run(living) })
	s.stop = func() error {
		end()
		life.Wait()
		return ended
	}
	return s, nil
}

// provision makes the containers, unless they are there, and gives them what they are
// to have.
func provision(ctx context.Context, a *account.Account, database string, t Throughput) error {
	db, err := cosmos.Connect(a.Connection(a.Unmetered(), database))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Provision(ctx); err != nil {
		return err
	}
	return a.Raise(ctx, database, map[string]int32{"catalog": t.Catalog, "cabinet": t.Cabinet, "bundles": t.Bundles})
}

// settings are those of a node whose documents are in an account, and the rest in a
// folder.
func settings(a *account.Account, database, folder string) config.Config {
	c := config.Default()
	c.Listen, c.BusListen, c.BlobListen, c.Data = "127.0.0.1:0", "", "", folder
	c.Cosmos = config.Cosmos{Endpoint: a.Endpoint(), Key: config.Secret(a.Key()), Database: database, Consistency: a.Consistency()}
	return c
}
