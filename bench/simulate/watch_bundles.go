package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A bundleActor takes bundles by any node. Its owner watches some of them.
type bundleActor struct {
	*watchOwner
	events int // so far
}

func newBundleActor(w *watchWorld, i int, use uint64) (*bundleActor, error) {
	who := fmt.Sprint("actor-", i)
	actor, err := domain.ParseActorID(who)
	return &bundleActor{watchOwner: &watchOwner{party: w.newParty(who, use), w: w, actor: actor}}, err
}

func (a *bundleActor) takeMany() error {
	for range 2 + a.d.n(5) {
		if !a.pause(time.Duration(a.d.n(10_000)) * time.Millisecond) {
			return nil
		}
		if err := a.take(); err != nil {
			return err
		}
	}
	return nil
}

// take saves events, peeks the bundle, perhaps watches it, and dequeues it. Sometimes an operator has
// it open again.
func (a *bundleActor) take() error {
	if err := a.save(); err != nil {
		return err
	}
	bundle, err := a.peek()
	if err != nil || bundle.ID == (domain.BundleID{}) {
		return err
	}
	resource := domain.BundleOf(a.actor, bundle.ID)
	a.w.pmu.Lock()
	a.w.opened = append(a.w.opened, resource)
	a.w.pmu.Unlock()
	if a.d.n(3) > 0 {
		if err := a.createOn(resource, a.actor); err != nil {
			return err
		}
	}
	if !a.pause(time.Duration(a.d.n(8000)) * time.Millisecond) {
		return nil
	}
	if err := a.dequeue(bundle.ID); err != nil || a.d.n(3) > 0 {
		return err
	}
	if err := a.replay(bundle.Group); err != nil {
		return err
	}
	return a.dequeue(bundle.ID)
}

func (a *bundleActor) save() error {
	events := make([]domain.Event, 1+a.d.n(4))
	for i := range events {
		a.events++
		events[i] = repositorytest.Event(a.actor)
		events[i].ID = domain.EventID(a.newID())
	}
	return a.w.untilDone(&a.party, "saves events", func(n *watchNode) (bool, error) {
		_, err := n.bundles.Save(a.w.ctx, a.actor, events)
		return err == nil, unexplainedWatch(a.who+" cannot save", err)
	})
}

// peek opens a bundle, or returns the one that is open.
func (a *bundleActor) peek() (bundle domain.Bundle, err error) {
	id := domain.BundleID(a.newID())
	err = a.w.untilDone(&a.party, "peeks", func(n *watchNode) (bool, error) {
		stores := repositorytest.Stores{Events: n.bundles, Bundles: n.bundles}
		peeked, err := repositorytest.Peek(a.w.ctx, stores, a.actor, domain.DefaultGroups().All(), id)
		if err == nil {
			bundle = peeked.Bundle
		}
		return err == nil || errors.Is(err, domain.ErrNoData), unexplainedWatch(a.who+" cannot peek", err)
	})
	return bundle, err
}

func (a *bundleActor) dequeue(id domain.BundleID) error {
	return a.w.untilDone(&a.party, "dequeues "+id.String(), func(n *watchNode) (bool, error) {
		resource := domain.BundleOf(a.actor, id)
		before := a.w.changes(resource)
		closed, err := n.bundles.Acknowledge(a.w.ctx, a.actor, id)
		if err == nil && closed.HasNotice {
			n.courier.Tell(a.actor)
		}
		if after := a.w.changes(resource); after > before {
			a.w.reached("a watched bundle was dequeued")
			if after > 1 {
				a.w.reached("a watched bundle was dequeued again after a replay")
			}
		}
		return err == nil || domain.KindOf(err) == domain.NotFound, unexplainedWatch(a.who+" cannot dequeue", err)
	})
}

// replay opens the bundle again that was dequeued last.
func (a *bundleActor) replay(group domain.Group) error {
	return a.w.untilDone(&a.party, "replays a bundle", func(n *watchNode) (bool, error) {
		_, err := n.bundles.Replay(a.w.ctx, a.actor, group, repository.Order{Who: a.who, Why: "a simulation"})
		kind := domain.KindOf(err)
		return err == nil || kind == domain.NotFound || kind == domain.Conflict, unexplainedWatch(a.who+" cannot replay", err)
	})
}
