package simulate

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	domainhub "github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
)

// watchPeriod is the period of the schedule of watches.
const watchPeriod = time.Second

// A watchNode has watches, documents of clients and bundles on a node: the parts that cmd/node wires.
type watchNode struct {
	*pushNode
	w       *watchWorld
	bundles *cosmos.Repository
	service *watch.Service
	relay   *watch.Relay
	courier *domainhub.Courier
}

// open connects the parts to the store and the engine of the node.
func (n *watchNode) open(db *client.Database, clock func() time.Time, random dice) {
	n.bundles = cosmos.New(db, n.w.content, cosmos.Options{
		DrawerCapacity: n.w.plan.capacity, TailEvents: []int{0, 24}[random.n(2)], SweepEvery: -1, Retention: n.w.retention, Clock: clock, Random: random.next,
	})
	n.relay = watch.NewRelay(n.store, n.store, n.engine.Published, watch.RelayOptions{Clock: clock, Random: random.next})
	n.courier = domainhub.NewCourier(n.bundles, n, domainhub.CourierOptions{Clock: clock, Random: random.next})
	n.service = watch.New(watch.Ports{
		Watches: &observedWatches{n.store, n.w}, Resources: n.store, Changes: n.store, Cursors: n.store, Streams: n.store, Bundles: n.bundles,
	}, watch.Options{
		Base: n.w.base, Created: n.created, Changed: n.changed, Clock: clock,
		Random: func() (b [10]byte) { _, _ = random.Read(b[:]); return b }, // which does not fail
	})
}

// start starts what publishes changes, and returns a function that waits for its end.
func (n *watchNode) start(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() { _ = n.bundles.Run(ctx) }) // none of them fails
	running.Go(func() { _ = n.relay.Run(ctx) })
	running.Go(func() { _ = n.courier.Run(ctx) })
	return running.Wait
}

// Notify implements [domainhub.Notifier].
func (n *watchNode) Notify(ctx context.Context, notice domain.Notice) error {
	return n.relay.Notify(ctx, notice)
}

// Receiver implements [delivery.Receivers].
func (n *watchNode) Receiver(ctx context.Context, cursor domain.CursorID) (delivery.Receiver, error) {
	found, err := n.service.Callee(ctx, cursor)
	if err != nil {
		return delivery.Receiver{}, err
	}
	r := n.w.find(cursor)
	return delivery.Receiver{
		Policy: domain.WatchPolicy(watchPeriod, n.w.attempts), Concurrency: r.concurrency, Target: &watchCallee{r.pushReceiver, found.CallbackURL},
	}, nil
}

// A watchCallee is a watch as a node has loaded it.
type watchCallee struct {
	*pushReceiver
	callbackURL string
}

// Call implements [delivery.Caller].
func (n *watchNode) Call(ctx context.Context, c delivery.Call) domain.Answer {
	to := c.Receiver.Target.(*watchCallee)
	change, err := domain.ChangeOf(&c.Entry.Message, c.Entry.Position.Number)
	if err != nil {
		n.p.fail(err)
		return domain.Answer{Lost: true, Error: "the change is damaged in the store"}
	}
	return n.calls(to.pushReceiver, c, func(id string) (webhook.Result, error) {
		return n.caller.CallWatch(ctx, &webhook.WatchCall{
			ID: id, Resource: n.w.base.URI(change.Resource), CallbackURL: to.callbackURL, Event: change.Event, Changed: change.At, Attempts: c.Attempt,
		})
	})
}

// observedWatches gives each watch a receiver before it is stored.
type observedWatches struct {
	*pushstore.Store
	w *watchWorld
}

// CreateWatch implements [repository.Watches].
func (o *observedWatches) CreateWatch(ctx context.Context, w *repository.Watch) error {
	o.w.addWatch(w)
	return o.Store.CreateWatch(ctx, w)
}
