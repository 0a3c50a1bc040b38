// Package baselinetest contains the code that the tests of the old layouts share. It opens an
// account, and checks that the costs of each layout are unchanged, so that the baseline stays the
// same.
package baselinetest

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// Database is the database of the tests.
const Database = "baseline"

// A Store is the open store of an old layout.
type Store interface {
	repository.DataAvailable
	repository.Bundles
}

// A Layout describes how to set up an old layout.
type Layout struct {
	Provision func(ctx context.Context, client *azcosmos.Client, database string, throughput int32) error
	New       func(client *azcosmos.Client, content repository.Content, o repositorytest.Options) (Store, error)
}

// Account opens an account with the containers of l, each with throughput request units per
// second.
func (l Layout) Account(t *testing.T, o account.Options, throughput int32) *account.Account {
	t.Helper()
	a, err := account.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	client, err := a.Client(a.Unmetered())
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, l.Provision(t.Context(), client, Database, throughput))
	return a
}

// Stores returns a store over a line, with its own content store.
func (l Layout) Stores(t *testing.T, a *account.Account, line *account.Line, o repositorytest.Options) repositorytest.Stores {
	t.Helper()
	client, err := a.Client(line)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	content := memory.NewContent()
	s, err := l.New(client, content, o)
	require.NoError(t, err)
	return repositorytest.Stores{Events: s, Bundles: s, Content: content}
}

// Opener returns the function with which the conformance suite opens stores. All stores use the
// same account, and call it without HTTP.
func (l Layout) Opener(t *testing.T) func(*testing.T, repositorytest.Options) repositorytest.Stores {
	a := l.Account(t, account.Options{}, 10_000)
	return func(t *testing.T, o repositorytest.Options) repositorytest.Stores {
		return l.Stores(t, a, a.Unmetered(), o)
	}
}
