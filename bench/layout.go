package bench

import (
	"context"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/repository"
)

// A layout is a way to lay events out in Cosmos.
type layout struct {
	name string

	// provision makes the containers in a database of the account, past its physics,
	// and gives each so many request units a second.
	provision func(ctx context.Context, a *account.Account, database string, throughput int32) error

	// open returns a store over l. Each has a memory of its own, as a process would.
	open func(a *account.Account, l *account.Line, database string) (*store, error)
}

// A store is a layout at work.
type store struct {
	repository.DataAvailable
	repository.Bundles

	// settle waits until the store has nothing left to do in the background.
	settle func(ctx context.Context) error
	close  func()
}
