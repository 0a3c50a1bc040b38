// Package layout defines what the bench measures: a way to lay events out in containers
// of Azure Cosmos DB, behind the ports of package repository.
//
// Package bench has the layout of the hub. Package baseline has those that the hub
// replaces; only bench/compare links it, so that the command messagehub does not
// carry code that no hub runs.
package layout

import (
	"context"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Layout is a way to lay events out in Cosmos.
type Layout struct {
	Name string

	// Provision makes the containers in the database that is named like the layout.
	// Throughput is that of each container, in request units a second.
	Provision func(ctx context.Context, a *account.Account, throughput int32) error

	// Open returns a store over l, which works until it is closed. Each store has a
	// memory of its own, as a process would.
	Open func(ctx context.Context, a *account.Account, l *account.Line) (*Store, error)

	// CleanUp removes over l what an actor has confirmed.
	CleanUp func(ctx context.Context, a *account.Account, l *account.Line, actor domain.ActorID) error
}

// A Store is an open layout.
type Store struct {
	repository.DataAvailable
	repository.Bundles

	// Settle waits until the store has completed its background work for an actor.
	Settle func(ctx context.Context, actor domain.ActorID)

	// Ingest saves gathered events of any actors. It is nil if the layout does not
	// gather events.
	Ingest func(ctx context.Context, events []domain.Event) error

	Close func()
}
