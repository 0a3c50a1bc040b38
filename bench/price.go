package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/domain"
)

// measurePrice measures the request units of an event from Save to cleanup. The account has no
// physics, because request units do not depend on time. Events are saved in batches, fetched and
// confirmed in bundles, and removed. The scenario includes batches of one event, because domains
// with few events send such batches.
func measurePrice(ctx context.Context, r *scenarioRun) error {
	modelled := *r
	modelled.Endpoint = "" // a modelled account, because the scenario compares two published descriptions of the charges
	r = &modelled
	lives := 0
	for _, batch := range []int{125, 1} {
		for _, standard := range []bool{false, true} {
			for _, l := range r.measuredLayouts() {
				r.reportProgress(float64(lives)/float64(4*len(r.measuredLayouts())), "%s, batches of %d", l.Name, batch)
				lives++
				life, err := measureLife(ctx, l, r.Seed, batch, standard)
				if err != nil {
					return fmt.Errorf("%s: %w", l.Name, err)
				}
				life.reportPrice(r, l.Name, batch, standard)
			}
		}
	}
	return nil
}

// A life is the cost of an event in request units, from Save to cleanup.
type life struct{ save, peek, dequeue, cleanUp float64 }

func (l life) totalUnits() float64 { return l.save + l.peek + l.dequeue + l.cleanUp }

func (l life) reportPrice(r *scenarioRun, name string, batch int, standard bool) {
	what := fmt.Sprintf("batches of %d, %s", batch, profileName(standard))
	var ofSave, ofLife *figure.Target
	if name == hub.Name && batch == 125 {
		ofSave, ofLife = figure.AtMost(0.5), figure.AtMost(1)
	}
	r.reportFigure(name, what+", save", l.save, figure.PerEvent, ofSave)
	r.reportFigure(name, what+", save to cleanup", l.totalUnits(), figure.PerEvent, ofLife)
	r.reportCurve(figure.Bars, name+", "+what, figure.PerEvent,
		figure.Point{Label: "save", Y: l.save}, figure.Point{Label: "peek", Y: l.peek},
		figure.Point{Label: "dequeue", Y: l.dequeue}, figure.Point{Label: "clean-up", Y: l.cleanUp})
}

// profileName returns the name of the profile that determines the charges of
// queries.
func profileName(standard bool) string {
	if standard {
		return "standard"
	}
	return "pessimistic"
}

// measureLife measures the life of events of one cabinet that are saved in batches of a given size.
// The events fill two drawers, so that the result includes the costs per drawer. With batches of
// one event, the events of one bundle suffice, because each event incurs every cost.
func measureLife(ctx context.Context, l layout.Layout, seed uint64, batch int, standard bool) (found life, err error) {
	err = runOnNewAccount(ctx, account.Options{Standard: standard}, l, func(a *account.Account, line *account.Line, s *layout.Store) error {
		found, err = measureLifeOn(ctx, a, line, l, s, seed, batch)
		return err
	})
	return found, err
}

func measureLifeOn(ctx context.Context, a *account.Account, line *account.Line, l layout.Layout, s *layout.Store, seed uint64, batch int) (found life, err error) {
	src := eventSource{seed: seed}
	actor := src.newActor()
	n := 2 * maxSaveEvents
	if batch == 1 {
		n = drainBundle
	}
	per := func(before account.Count) float64 { return line.Count().Since(before).Units / float64(n) }
	before := line.Count()
	for range n / batch {
		if err := saveAll(ctx, s, actor, src.newEvents(batch, actor, domain.MaxBundleWeight/drainBundle)); err != nil {
			return life{}, err
		}
	}
	s.Settle(ctx, actor)
	found.save = per(before)

	for left := n; left > 0; {
		before = line.Count()
		bundle, err := openBundle(ctx, s, actor, src.newID())
		if err != nil {
			return life{}, err
		}
		found.peek += per(before)
		before = line.Count()
		if _, err = s.Acknowledge(ctx, actor, bundle.ID); err != nil {
			return life{}, err
		}
		s.Settle(ctx, actor)
		found.dequeue += per(before)
		left -= bundle.Count
	}
	before = line.Count()
	err = l.CleanUp(ctx, a, line, actor)
	found.cleanUp = per(before)
	return found, err
}

// sweepHub removes all acknowledged events, as a hub with no retention time does: the first sweep
// records the position of the last acknowledged event, the second sweep removes the events.
func sweepHub(ctx context.Context, a *account.Account, l *account.Line, _ domain.ActorID) error {
	r, stop, err := openHub(ctx, a, l, cosmos.Options{Retention: time.Nanosecond})
	if err != nil {
		return err
	}
	defer stop()
	for range 2 {
		if _, err := r.Sweep(ctx); err != nil {
			return err
		}
	}
	return nil
}
