package bench

import (
	"context"
	"fmt"
	"sync"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A layout is a way to lay events out in Cosmos.
type layout struct {
	name string

	// provision makes the containers in the database that is named like the layout,
	// and gives each of them so many request units a second.
	provision func(ctx context.Context, a *account.Account, throughput int32) error

	// open returns a store over l, which works until it is closed. Each has a memory
	// of its own, as a process would.
	open func(ctx context.Context, a *account.Account, l *account.Line) (*store, error)

	// cleanUp removes over l what an actor has confirmed.
	cleanUp func(ctx context.Context, a *account.Account, l *account.Line, actor domain.ActorID) error
}

// sideBySide are the layouts that are compared.
var sideBySide = []layout{hub, originalLayout, singleLayout}

// provisionAll makes the containers of all layouts that are compared.
func provisionAll(ctx context.Context, a *account.Account) error {
	for _, l := range sideBySide {
		if err := l.provision(ctx, a, perContainer); err != nil {
			return fmt.Errorf("provision %s: %w", l.name, err)
		}
	}
	return nil
}

// A store is a layout at work.
type store struct {
	repository.DataAvailable
	repository.Bundles

	// settle waits until the store has done for an actor what it does in the
	// background.
	settle func(ctx context.Context, actor domain.ActorID)

	// ingest saves events that have gathered, for any actors; nil if the layout does
	// not wait for that.
	ingest func(ctx context.Context, events []domain.Event) error
	close  func()
}

// hub is the layout that ships.
var hub = layout{
	name: "hub",
	provision: func(ctx context.Context, a *account.Account, throughput int32) error {
		db, err := cosmos.Connect(a.Connection(a.Unmetered(), "hub"))
		if err != nil {
			return err
		}
		defer db.Close()
		if err := db.Provision(ctx); err != nil {
			return err
		}
		return a.Raise(ctx, "hub", map[string]int32{"catalog": throughput, "cabinet": throughput, "bundles": throughput})
	},
	open: func(ctx context.Context, a *account.Account, l *account.Line) (*store, error) {
		r, stop, err := openHub(ctx, a, l, cosmos.Options{})
		if err != nil {
			return nil, err
		}
		return &store{DataAvailable: r, Bundles: r, settle: r.Settle, close: stop}, nil
	},
	cleanUp: sweepHub,
}

// openHub returns the hub's repository over l, at work until stop is called. It
// sweeps when it is told to, so that nobody pays for it unawares.
func openHub(ctx context.Context, a *account.Account, l *account.Line, o cosmos.Options) (r *cosmos.Repository, stop func(), err error) {
	db, err := cosmos.Connect(a.Connection(l, "hub"))
	if err != nil {
		return nil, nil, err
	}
	o.Exclusive, o.SweepEvery = true, -1
	r = cosmos.New(db, memory.NewContent(), o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) }) // which ends with ctx and never fails
	return r, func() {
		cancel()
		running.Wait()
		db.Close()
	}, nil
}
