// Package layout defines what the bench measures: how events are stored in containers
// of Azure Cosmos DB, behind the ports of package repository.
//
// Package bench defines the layout of the hub. Package baseline defines the layouts that the hub
// replaces; only bench/compare links baseline, so that the command messagehub does not contain code
// that no hub runs.
package layout

import (
	"context"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Layout is a way to store events in Cosmos DB.
type Layout struct {
	Name string

	// Provision creates the containers in the database that has the name of the
	// layout. Throughput is the throughput of each container, in request units per
	// second.
	Provision func(ctx context.Context, a *account.Account, throughput int32) error

	// Open returns a store over l, which the caller closes. Each store has its own caches, as if it
	// were in a separate process.
	Open func(ctx context.Context, a *account.Account, l *account.Line) (*Store, error)

	// CleanUp removes the events that an actor has confirmed, with requests over l.
	CleanUp func(ctx context.Context, a *account.Account, l *account.Line, actor domain.ActorID) error
}

// A Store is an open layout.
type Store struct {
	repository.DataAvailable
	repository.Bundles

	// Settle waits until the store has completed its background work for an actor.
	Settle func(ctx context.Context, actor domain.ActorID)

	// Ingest saves events of any recipients together. It is nil if the layout does
	// not collect events of several recipients.
	Ingest func(ctx context.Context, events []domain.Event) error

	Close func()
}
