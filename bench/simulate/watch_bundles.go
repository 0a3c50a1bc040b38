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
	sweeper *bundleSweeper
	events  int // so far
}

func newBundleActor(w *watchWorld, i int, use uint64) (*bundleActor, error) {
	who := fmt.Sprint("actor-", i)
	actor, err := domain.ParseActorID(who)
	return &bundleActor{
		watchOwner: &watchOwner{party: w.newParty(who, use), w: w, actor: actor},
		sweeper:    &bundleSweeper{party: w.newParty("sweeper-"+who, use+50), w: w, actor: actor},
	}, err
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
	if err := a.dequeue(bundle.ID); err != nil || a.d.n(2) > 0 {
		return err
	}
	for range 1 + a.d.n(4) {
		if err := a.replayAndDequeue(&bundle); err != nil {
			return err
		}
	}
	return nil
}

// replayAndDequeue has an operator open a bundle again, mostly when it is due and a node sweeps, and dequeues it.
func (a *bundleActor) replayAndDequeue(b *domain.Bundle) error {
	again := func() error { return a.replay(b.Group) }
	var err error
	if a.d.n(4) == 0 {
		err = again()
	} else if a.pause(a.w.retention) {
		err = a.w.runTogether(a.sweeper.sweep, again)
	}
	if err != nil {
		return err
	}
	return a.dequeue(b.ID)
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

// A bundleSweeper has the retention of bundles enforced by any node, of one actor or of all.
type bundleSweeper struct {
	party
	w     *watchWorld
	actor domain.ActorID
}

func (s *bundleSweeper) sweep() error {
	return s.w.untilDone(&s.party, "sweeps", func(n *watchNode) (bool, error) {
		var err error
		if s.d.n(4) == 0 {
			_, err = n.bundles.Sweep(s.w.ctx)
		} else {
			_, err = n.bundles.SweepRecipient(s.w.ctx, s.actor)
		}
		return err == nil, unexplainedWatch("a sweep fails", err)
	})
}

// sweepLast sweeps once the last bundle of the actor is due, unless the clocks of nodes differ.
func (s *bundleSweeper) sweepLast() error {
	if !s.pause(s.w.retention) {
		return nil
	}
	return s.sweep()
}
