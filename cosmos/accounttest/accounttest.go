// Package accounttest opens an embedded Cosmos account for a test. Any number of nodes share the
// account, each with its own connection. All requests use one transport, in which a test can break
// requests. The engine and the connections are closed when the test ends.
package accounttest

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// An Account is an embedded account with the containers of a store.
type Account struct {
	Engine    *embedded.Engine
	Transport *faulty.Transport // transport of all requests to Engine
	Content   repository.Content

	t testing.TB
}

// New returns an account on a new engine.
func New(t testing.TB, opts embedded.Options, containers []client.ContainerSpec) *Account {
	t.Helper()
	engine, err := embedded.Open(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return NewOnEngine(t, engine, containers)
}

// NewOnEngine returns an account on an engine, which the caller closes.
func NewOnEngine(t testing.TB, engine *embedded.Engine, containers []client.ContainerSpec) *Account {
	t.Helper()
	a := &Account{Engine: engine, Transport: &faulty.Transport{Next: engine.Transport()}, Content: memory.NewContent(), t: t}
	require.NoError(t, a.Connect().Provision(t.Context(), containers))
	return a
}

// Connect returns a connection that uses Line.
func (a *Account) Connect() *client.Database { return a.ConnectBy(a.Transport) }

// ConnectBy returns a connection that uses another transport.
func (a *Account) ConnectBy(line policy.Transporter) *client.Database {
	a.t.Helper()
	db, err := client.Connect(client.Connection{Endpoint: a.Engine.Endpoint(), Key: a.Engine.Key(), Transport: line})
	require.NoError(a.t, err)
	a.t.Cleanup(db.Close)
	return db
}
