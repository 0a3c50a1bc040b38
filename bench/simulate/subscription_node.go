package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A subscriptionNode runs the use cases of owners and senders on a node, built from the same components as in cmd/node.
type subscriptionNode struct {
	*pushNode
	sim    *subscriptionSimulation
	owners *subscribe.Service
	events *publish.Service
}

// openServices connects the use cases to the store and the engine of the node.
func (n *subscriptionNode) openServices(clock func() time.Time) {
	n.owners = subscribe.New(subscribe.Ports{
		Definitions: n.store, Streams: n.store, Cursors: n.store,
		Dequeues: memory.New(memory.Options{}), // not used, because the simulation has no subscriptions to dequeued bundles
	}, nil, subscribe.Options{CheckURL: n.caller.CheckURL, Created: n.notifyCreated, Changed: n.notifyChanged, Clock: clock})
	n.events = publish.New(n.store, n.engine.Published)
}

// Receiver implements [delivery.Receivers].
func (n *subscriptionNode) Receiver(ctx context.Context, cursor domain.CursorID, isCurrent bool) (delivery.Receiver, error) {
	id, err := domain.SubscriptionOf(cursor)
	if err != nil {
		return delivery.Receiver{}, err
	}
	read := n.store.Subscription
	if isCurrent {
		read = n.store.CurrentSubscription
	}
	d, err := read(ctx, id)
	if err != nil {
		return delivery.Receiver{}, err
	}
	s := n.sim.findSubscription(id)
	return delivery.Receiver{
		Subscription: d.Subscription, Policy: domain.QueuePolicy(pushDelays, len(pushDelays)), Concurrency: d.MaxConcurrency,
		MaxRate: d.MaxRate, IsOrdered: d.IsOrdered, IsPaused: d.Paused, Resumed: d.Resumed, Target: s.pushReceiver,
		Matches: func(e *repository.Entry) bool { return s.matches(entryOf(s.stream, e.Position.EntryID)) },
	}, nil
}

// Call implements [delivery.Caller].
func (n *subscriptionNode) Call(ctx context.Context, c delivery.Call) domain.Answer {
	id, err := domain.SubscriptionOf(c.Cursor)
	if err == nil {
		err = n.sim.checkOrder(n.sim.findSubscription(id), &c)
	}
	if err != nil {
		n.sim.Fail(fmt.Errorf("%s calls: %w", n.who, err))
	}
	return n.pushNode.Call(ctx, c)
}

// checkOrder returns an error if the first attempt for an event of an ordered subscription begins before the delivery of
// an earlier event has ended.
func (sim *subscriptionSimulation) checkOrder(s *ownedSubscription, c *delivery.Call) error {
	if !s.isOrdered || c.Attempt > 0 {
		return nil
	}
	e := entryOf(s.stream, c.Entry.Position.EntryID)
	outstanding, at := sim.observer.Outstanding(s.cursor.String())
	for _, other := range outstanding {
		if other.Priority == e.Priority && other.Number < e.Number {
			return fmt.Errorf("P16: %s is called with %s before %s has ended", s.name, e, other)
		}
	}
	for number := at[e.Priority]; number < e.Number; number++ {
		other := e
		other.Number = number
		if s.matches(other) {
			return fmt.Errorf("P16: %s is called with %s before %s was taken from the stream", s.name, e, other)
		}
	}
	sim.MarkReached("an ordered subscription was called")
	return nil
}
