package simulate

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	domainhub "github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
)

// watchPeriod is the period of the retry policy of watches.
const watchPeriod = time.Second

// A watchNode runs the services for watches, clients' documents and bundles on a node. It is built from the same
// components as in cmd/node.
type watchNode struct {
	*pushNode
	sim         *watchSimulation
	bundles     *cosmos.Repository
	service     *watch.Service
	relay       *watch.Relay
	noticeRelay *domainhub.NoticeRelay
}

// openServices connects the services to the store and the engine of the node.
func (n *watchNode) openServices(db *client.Database, clock func() time.Time, random random.Source) {
	n.bundles = cosmos.New(db, n.sim.content, cosmos.Options{
		DrawerCapacity: n.sim.plan.capacity, TailEvents: []int{0, 24}[random.IntN(2)], SweepEvery: -1, Retention: n.sim.retention, Clock: clock, Random: random.Uint64,
	})
	n.relay = watch.NewRelay(n.store, n.store, n.engine.Published, watch.RelayOptions{Clock: clock, Random: random.Uint64})
	n.noticeRelay = domainhub.NewNoticeRelay(n.bundles, n, domainhub.NoticeRelayOptions{Clock: clock, Random: random.Uint64})
	n.service = watch.New(watch.Ports{
		Watches: &observedWatches{n.store, n.sim}, Resources: n.store, Changes: n.store, Cursors: n.store, Streams: n.store, Bundles: n.bundles,
	}, watch.Options{
		Base: n.sim.base, Created: n.notifyCreated, Changed: n.notifyChanged, Clock: clock,
		Random: func() (b [10]byte) { _, _ = random.Read(b[:]); return b }, // a random source does not fail
	})
}

// startRelays starts the relays of changes and notices, and returns a function that waits for their end.
func (n *watchNode) startRelays(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() { _ = n.bundles.Run(ctx) }) // the relays return no error
	running.Go(func() { _ = n.relay.Run(ctx) })
	running.Go(func() { _ = n.noticeRelay.Run(ctx) })
	return running.Wait
}

// Notify implements [domainhub.Notifier].
func (n *watchNode) Notify(ctx context.Context, notice domain.Notice) error {
	return n.relay.Notify(ctx, notice)
}

// Receiver implements [delivery.Receivers].
func (n *watchNode) Receiver(ctx context.Context, cursor domain.CursorID, isCurrent bool) (delivery.Receiver, error) {
	found, err := n.service.WatchOf(ctx, cursor, isCurrent)
	if err != nil {
		return delivery.Receiver{}, err
	}
	r := n.sim.findWatch(cursor)
	return delivery.Receiver{
		Policy: domain.WatchPolicy(watchPeriod, n.sim.attempts), Concurrency: r.concurrency, Target: &watchCallee{r.pushReceiver, found.CallbackURL},
	}, nil
}

// A watchCallee is the receiver of a watch that a node has loaded.
type watchCallee struct {
	*pushReceiver
	callbackURL string
}

// Call implements [delivery.Caller].
func (n *watchNode) Call(ctx context.Context, c delivery.Call) domain.Answer {
	to := c.Receiver.Target.(*watchCallee)
	change, err := domain.ChangeOf(&c.Entry.Message, c.Entry.Position.Number)
	if err != nil {
		n.sim.Fail(err)
		return domain.Answer{Lost: true, Error: "the change is damaged in the store"}
	}
	return n.callReceiver(to.pushReceiver, c, func(id string) (webhook.Result, error) {
		return n.caller.CallWatch(ctx, &webhook.WatchCall{
			ID: id, Resource: n.sim.base.URI(change.Resource), CallbackURL: to.callbackURL, Event: change.Event, Changed: change.At, Attempts: c.Attempt,
		})
	})
}

// observedWatches creates the receiver of each watch before the watch is stored.
type observedWatches struct {
	*pushstore.Store
	sim *watchSimulation
}

// CreateWatch implements [repository.Watches].
func (o *observedWatches) CreateWatch(ctx context.Context, w *repository.Watch) error {
	o.sim.addWatch(w)
	return o.Store.CreateWatch(ctx, w)
}
