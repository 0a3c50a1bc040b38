package bench

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/repository/memory"
)

// provisionAll creates the containers of all measured layouts.
func (r *scenarioRun) provisionAll(ctx context.Context, a *account.Account) error {
	for _, l := range r.measuredLayouts() {
		if err := l.Provision(ctx, a, perContainer); err != nil {
			return fmt.Errorf("provision %s: %w", l.Name, err)
		}
	}
	return nil
}

// hub is the hub's own layout.
var hub = layout.Layout{
	Name: "hub",
	Provision: func(ctx context.Context, a *account.Account, throughput int32) error {
		db, err := client.Connect(a.Connection(a.Unmetered(), "hub"))
		if err != nil {
			return err
		}
		defer db.Close()
		if err := db.Provision(ctx, cosmos.Containers()); err != nil {
			return err
		}
		return a.Raise(ctx, "hub", map[string]int32{"catalog": throughput, "cabinet": throughput, "bundles": throughput})
	},
	Open: func(ctx context.Context, a *account.Account, l *account.Line) (*layout.Store, error) {
		r, stop, err := openHub(ctx, a, l, cosmos.Options{})
		if err != nil {
			return nil, err
		}
		return &layout.Store{DataAvailable: r, Bundles: r, Settle: r.AwaitHints, Close: stop}, nil
	},
	CleanUp: sweepHub,
}

// openHub returns a running repository of the hub over l; stop ends the repository. The repository
// sweeps only on request, because a sweep costs request units.
func openHub(ctx context.Context, a *account.Account, l *account.Line, o cosmos.Options) (r *cosmos.Repository, stop func(), err error) {
	db, err := client.Connect(a.Connection(l, "hub"))
	if err != nil {
		return nil, nil, err
	}
	o.Exclusive, o.SweepEvery, o.TailEvents = true, -1, cmp.Or(o.TailEvents, cosmos.DefaultTailEvents)
	r = cosmos.New(db, memory.NewContent(), o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) }) // Run ends with ctx and always returns nil
	return r, func() {
		cancel()
		running.Wait()
		db.Close()
	}, nil
}
