package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

// subscribeActors subscribes the actors that do not poll. The receiver of the
// last of them is unavailable.
func (d *Demo) subscribeActors(ctx context.Context, hub *hubclient.Client) error {
	for i, actor := range d.market.Actors {
		if !isCalled(i) {
			continue
		}
		a := &calledActor{
			actorClient: &actorClient{hub: hub, actor: actor.GLN, ledger: d.ledger, tally: d.tallies[i], onBundle: func(int) {}},
			name:        actor.Name,
		}
		if err := a.subscribeToCalls(ctx); err != nil {
			return err
		}
		d.called = append(d.called, a)
	}
	d.called[len(d.called)-1].isAway.Store(true)
	return nil
}

// pollingActors returns the actors that poll.
func (d *Demo) pollingActors() (actors []string) {
	for i, actor := range d.market.Actors {
		if !isCalled(i) {
			actors = append(actors, actor.GLN)
		}
	}
	return actors
}

// runCalledActor lets an actor fetch its events when the hub calls it. If the
// hub does not call, the report counts the remaining events as lost.
func (d *Demo) runCalledActor(ctx context.Context, a *calledActor, sent <-chan struct{}) error {
	err := a.fetchWhenCalled(ctx, sent, d.patience, func() bool { return d.ledger.Outstanding(a.actor) == 0 })
	if errors.Is(err, errNotCalled) {
		fmt.Fprintln(d.Out, err)
		return nil
	}
	return err
}

// recoverActor prints the dead letter of the actor whose receiver is
// unavailable, makes the receiver work again, and replays the delivery. The hub
// then calls the actor, which fetches all of its data.
func (d *Demo) recoverActor(ctx context.Context, sent <-chan struct{}) error {
	a := d.called[len(d.called)-1]
	dead, err := a.awaitDeadLetter(ctx, d.patience)
	if errors.Is(err, errNoDeadLetter) {
		fmt.Fprintf(d.Out, "%s: %v\n", a.name, err) // no error: the report counts the events that were not fetched as lost
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
	}
	fmt.Fprintf(d.Out, "The receiver of %s was unavailable: it answered 503 to %d calls. A notification for this actor is a dead letter:\n  %s after %d attempts: %s\n",
		a.name, a.refused.Load(), dead.ID, dead.Attempts, dead.Reason)
	a.isAway.Store(false)
	id, err := domain.ParseDeliveryID(dead.ID)
	if err == nil {
		err = a.hub.ReplayDelivery(ctx, a.actor, id)
	}
	if err != nil {
		return fmt.Errorf("%s: replay: %w", a.name, err)
	}
	if err := d.runCalledActor(ctx, a, sent); err != nil {
		return err
	}
	a.tally.mu.Lock()
	defer a.tally.mu.Unlock()
	_, err = fmt.Fprintf(d.Out, "The receiver is available again, the dead letter was replayed, and %s has fetched %d events.\n\n", a.name, a.tally.events)
	return err
}

// errNoDeadLetter means that the actor has no dead letter to replay.
var errNoDeadLetter = errors.New("the notification for this actor has not become a dead letter")

// awaitDeadLetter waits until the actor has a dead letter, and returns the dead
// letter. It also waits until no delivery is waiting for another attempt, because
// that attempt would call the actor before the replay.
func (a *calledActor) awaitDeadLetter(ctx context.Context, limit time.Duration) (*hubclient.MessageDelivery, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoDeadLetter)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		texts, _, err := a.hub.Deliveries(ctx, a.actor, a.subscription, "", 100)
		if err != nil {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		var last hubclient.MessageDelivery
		if n := len(texts); n > 0 {
			if err := json.Unmarshal(texts[n-1], &last); err != nil {
				return nil, err
			}
		}
		if last.State == "dead" {
			return &last, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
