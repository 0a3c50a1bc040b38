package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
)

// measureKinds saves single events of an increasing number of kinds for one recipient, without
// physics. After the delivery and removal of all events, it saves again: kinds without events must
// not increase the cost of a Save. Then it repeats the check after 10,000 kinds that were used in
// succession, a few at a time.
func measureKinds(ctx context.Context, r *scenarioRun) error {
	modelled := *r
	modelled.Endpoint = ""
	return r.eachLayout(func(l layout.Layout, progress progressFunc) error {
		progress(0, "%s", l.Name)
		return measureKindsOf(ctx, &modelled, l)
	})
}

func measureKindsOf(ctx context.Context, r *scenarioRun, l layout.Layout) error {
	return runOnNewAccount(ctx, account.Options{}, l, func(a *account.Account, line *account.Line, s *layout.Store) error {
		return kindsOn(ctx, r, a, line, l, s)
	})
}

func kindsOn(ctx context.Context, r *scenarioRun, a *account.Account, line *account.Line, l layout.Layout, s *layout.Store) error {
	k := &kindSaver{store: s, line: line, src: eventSource{seed: r.Seed}}
	k.actor = k.src.newActor()
	counts := pickSize(r, []int{1, 10, 100, 1_000}, []int{1, 10, 100})
	var first kindsCost
	for i, n := range counts {
		if err := k.saveKindsUpTo(ctx, n); err != nil {
			return err
		}
		found, err := k.reportCost(ctx, r, a, l, fmt.Sprintf("with %d kinds", n), nil)
		if err != nil {
			return err
		}
		if i == 0 {
			first = found
		}
	}
	if l.Name != hub.Name {
		return nil
	}
	r.reportProgress(0.5, "%s: deliver and remove %d kinds", l.Name, k.kinds)
	if err := k.removeAll(ctx, a, l); err != nil {
		return err
	}
	accepted := 0
	const more = 5
	for i := range more {
		saved, err := s.Save(ctx, k.actor, k.event(k.kinds+i))
		if err == nil {
			accepted += saved.Accepted
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	gone := fmt.Sprintf("after %d kinds are gone", k.kinds)
	r.reportFigure(l.Name, fmt.Sprintf("accepted new kinds of %d %s", more, gone), float64(accepted), "kinds", figure.AtLeast(more))
	come := k.kinds
	for all := pickSize(r, 10_000, 500); come < all; come += k.kinds {
		if err := k.removeAll(ctx, a, l); err != nil {
			return err
		}
		r.reportProgress(0.5+0.5*float64(come)/float64(all), "%s: %d kinds have come and gone", l.Name, come)
		k.kinds = 100
		var events []domain.Event
		for n := range k.kinds {
			events = append(events, k.event(n)...)
		}
		if err := saveAll(ctx, k.store, k.actor, events); err != nil {
			return err
		}
	}
	if err := k.removeAll(ctx, a, l); err != nil {
		return err
	}
	k.kinds = 0
	if err := k.saveKindsUpTo(ctx, 1); err != nil {
		return err
	}
	_, err := k.reportCost(ctx, r, a, l, fmt.Sprintf("after %d kinds were used and removed", come), &first)
	return err
}

// removeAll delivers all events, and removes them and their kinds.
func (k *kindSaver) removeAll(ctx context.Context, a *account.Account, l layout.Layout) error {
	if err := k.deliverAll(ctx); err != nil {
		return err
	}
	for range 2 { // the first sweep removes the events and the kinds, the second removes the entries of the kinds in the gates
		if err := l.CleanUp(ctx, a, a.Unmetered(), k.actor); err != nil {
			return err
		}
	}
	return nil
}

// A kindsCost is the cost of a Save for a recipient with events of many kinds.
type kindsCost struct {
	units, requests float64 // per Save of one event
	head            float64 // size of the head in KB
}

// A kindSaver saves events of many kinds for one recipient.
type kindSaver struct {
	store *layout.Store
	line  *account.Line
	src   eventSource
	actor domain.ActorID
	kinds int // number of kinds that have events
}

// event returns an event of kind n.
func (k *kindSaver) event(n int) []domain.Event {
	events := k.src.newEvents(1, k.actor, 1)
	events[0].ContentType = contentTypeOf(n)
	return events
}

// contentTypeOf returns the content type of kind n.
func contentTypeOf(n int) domain.ContentType {
	return must(domain.ParseContentType(fmt.Sprintf("kind-%d", n)))
}

// saveKindsUpTo saves an event of each of the first n kinds that has no event
// yet.
func (k *kindSaver) saveKindsUpTo(ctx context.Context, n int) error {
	for ; k.kinds < n; k.kinds++ {
		if err := saveAll(ctx, k.store, k.actor, k.event(k.kinds)); err != nil {
			return err
		}
	}
	return nil
}

// reportCost reports the cost of a Save of one event of a known kind, and the size of the head. If
// earlier is not nil, the target is the cost in earlier plus 10 %.
func (k *kindSaver) reportCost(ctx context.Context, r *scenarioRun, a *account.Account, l layout.Layout, when string, earlier *kindsCost) (found kindsCost, err error) {
	const times = 20
	before := k.line.Count()
	for i := range times {
		if err := saveAll(ctx, k.store, k.actor, k.event(i%k.kinds)); err != nil {
			return found, fmt.Errorf("%s: %w", when, err)
		}
	}
	k.store.Settle(ctx, k.actor)
	took := k.line.Count().Since(before)
	found.units, found.requests = took.Units/times, float64(took.Requests)/times
	if l.Name == hub.Name {
		stored, err := readStorage(ctx, a, l.Name, "catalog")
		if err != nil {
			return found, err
		}
		found.head = float64(stored.largest) / 1024
	}
	target := func(was func(*kindsCost) float64) *figure.Target {
		if earlier == nil {
			return nil
		}
		return figure.AtMost(1.1 * was(earlier))
	}
	r.reportFigure(l.Name, "save of one event "+when+", request units", found.units, "RU", target(func(c *kindsCost) float64 { return c.units }))
	r.reportFigure(l.Name, "save of one event "+when+", requests", found.requests, "requests", target(func(c *kindsCost) float64 { return c.requests }))
	if l.Name == hub.Name {
		r.reportFigure(l.Name, "head "+when, found.head, "KB", target(func(c *kindsCost) float64 { return c.head }))
	}
	return found, nil
}

// deliverAll peeks and dequeues until no event is waiting.
func (k *kindSaver) deliverAll(ctx context.Context) error {
	for {
		bundle, err := openBundle(ctx, k.store, k.actor, k.src.newID())
		if errors.Is(err, domain.ErrNoData) {
			k.store.Settle(ctx, k.actor)
			return nil
		}
		if err == nil {
			_, err = k.store.Acknowledge(ctx, k.actor, bundle.ID)
		}
		if err != nil {
			return err
		}
	}
}
