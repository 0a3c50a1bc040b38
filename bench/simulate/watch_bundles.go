package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A bundleActor peeks and dequeues bundles through any node, and watches some of the bundles.
type bundleActor struct {
	*watchOwner
	sweeper *bundleSweeper
	events  int // so far
}

func newBundleActor(sim *watchSimulation, i int, use uint64) (*bundleActor, error) {
	who := fmt.Sprint("actor-", i)
	actor, err := domain.ParseActorID(who)
	return &bundleActor{
		watchOwner: &watchOwner{baseClient: sim.newClient(who, use), sim: sim, actor: actor},
		sweeper:    &bundleSweeper{baseClient: sim.newClient("sweeper-"+who, use+50), sim: sim, actor: actor},
	}, err
}

func (a *bundleActor) takeMany() error {
	for range 2 + a.rng.IntN(5) {
		if !a.pause(time.Duration(a.rng.IntN(10_000)) * time.Millisecond) {
			return nil
		}
		if err := a.takeBundle(); err != nil {
			return err
		}
	}
	return nil
}

// takeBundle saves events, peeks a bundle, sometimes watches the bundle, and dequeues the bundle. Sometimes an operator
// then opens the bundle again.
func (a *bundleActor) takeBundle() error {
	if err := a.saveEvents(); err != nil {
		return err
	}
	bundle, err := a.peekBundle()
	if err != nil || bundle.ID == (domain.BundleID{}) {
		return err
	}
	resource := domain.BundleOf(a.actor, bundle.ID)
	a.sim.pmu.Lock()
	a.sim.opened = append(a.sim.opened, resource)
	a.sim.pmu.Unlock()
	if a.rng.IntN(3) > 0 {
		if err := a.createOn(resource, a.actor); err != nil {
			return err
		}
	}
	if !a.pause(time.Duration(a.rng.IntN(8000)) * time.Millisecond) {
		return nil
	}
	if err := a.dequeueBundle(bundle.ID); err != nil || a.rng.IntN(2) > 0 {
		return err
	}
	for range 1 + a.rng.IntN(4) {
		if err := a.replayAndDequeue(&bundle); err != nil {
			return err
		}
	}
	return nil
}

// replayAndDequeue opens a bundle again as an operator, and dequeues the bundle. Most replays happen at the end of the
// retention, while a node sweeps.
func (a *bundleActor) replayAndDequeue(b *domain.Bundle) error {
	again := func() error { return a.replayBundle(b.Group) }
	var err error
	if a.rng.IntN(4) == 0 {
		err = again()
	} else if a.pause(a.sim.retention) {
		err = a.sim.runTogether(a.sweeper.sweepOnce, again)
	}
	if err != nil {
		return err
	}
	return a.dequeueBundle(b.ID)
}

func (a *bundleActor) saveEvents() error {
	events := make([]domain.Event, 1+a.rng.IntN(4))
	for i := range events {
		a.events++
		events[i] = repositorytest.Event(a.actor)
		events[i].ID = domain.EventID(a.newID())
	}
	return a.sim.callUntilDone(&a.baseClient, "saves events", func(n *watchNode) (bool, error) {
		_, err := n.bundles.Save(a.sim.ctx, a.actor, events)
		return err == nil, unexplainedWatch(a.who+" cannot save", err)
	})
}

// peekBundle opens a bundle, or returns the open bundle.
func (a *bundleActor) peekBundle() (bundle domain.Bundle, err error) {
	id := domain.BundleID(a.newID())
	err = a.sim.callUntilDone(&a.baseClient, "peeks", func(n *watchNode) (bool, error) {
		stores := repositorytest.Stores{Events: n.bundles, Bundles: n.bundles}
		peeked, err := repositorytest.Peek(a.sim.ctx, stores, a.actor, domain.DefaultGroups().All(), id)
		if err == nil {
			bundle = peeked.Bundle
		}
		return err == nil || errors.Is(err, domain.ErrNoData), unexplainedWatch(a.who+" cannot peek", err)
	})
	return bundle, err
}

func (a *bundleActor) dequeueBundle(id domain.BundleID) error {
	return a.sim.callUntilDone(&a.baseClient, "dequeues "+id.String(), func(n *watchNode) (bool, error) {
		resource := domain.BundleOf(a.actor, id)
		before := a.sim.countChanges(resource)
		closed, err := n.bundles.Acknowledge(a.sim.ctx, a.actor, id)
		if err == nil && closed.HasNotice {
			n.noticeRelay.Enqueue(a.actor)
		}
		if after := a.sim.countChanges(resource); after > before {
			a.sim.MarkReached("a watched bundle was dequeued")
			if after > 1 {
				a.sim.MarkReached("a watched bundle was dequeued again after a replay")
			}
		}
		return err == nil || domain.KindOf(err) == domain.NotFound, unexplainedWatch(a.who+" cannot dequeue", err)
	})
}

// replayBundle opens the last dequeued bundle again.
func (a *bundleActor) replayBundle(group domain.Group) error {
	return a.sim.callUntilDone(&a.baseClient, "replays a bundle", func(n *watchNode) (bool, error) {
		_, err := n.bundles.Replay(a.sim.ctx, a.actor, group, repository.AdminAction{Who: a.who, Why: "a simulation"})
		kind := domain.KindOf(err)
		return err == nil || kind == domain.NotFound || kind == domain.Conflict, unexplainedWatch(a.who+" cannot replay", err)
	})
}

// A bundleSweeper sweeps the bundles of one actor or of all actors, through any node.
type bundleSweeper struct {
	baseClient
	sim   *watchSimulation
	actor domain.ActorID
}

func (s *bundleSweeper) sweepOnce() error {
	return s.sim.callUntilDone(&s.baseClient, "sweeps", func(n *watchNode) (bool, error) {
		var err error
		if s.rng.IntN(4) == 0 {
			_, err = n.bundles.Sweep(s.sim.ctx)
		} else {
			_, err = n.bundles.SweepRecipient(s.sim.ctx, s.actor)
		}
		return err == nil, unexplainedWatch("a sweep fails", err)
	})
}

// sweepLast sweeps after the retention of the actor's last bundle has ended, unless the clocks of the nodes differ.
func (s *bundleSweeper) sweepLast() error {
	if !s.pause(s.sim.retention) {
		return nil
	}
	return s.sweepOnce()
}
