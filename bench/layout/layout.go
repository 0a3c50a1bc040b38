// Package layout defines what the bench measures: how events are stored in containers
// of Azure Cosmos DB, behind the ports of package repository.
//
// Package bench has the layout of the hub. Package baseline has the layouts that the
// hub replaces; only bench/compare links it, so that the command messagehub does not
// contain code that no hub runs.
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

	// Open returns a store over l, which the caller closes. Stores do not share caches, as if they
	// were in different processes.
	Open func(ctx context.Context, a *account.Account, l *account.Line) (*Store, error)

	// CleanUp removes over l the events that an actor has confirmed.
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
