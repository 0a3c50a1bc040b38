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

// measurePrice follows events through their whole life, without physics, for request units
// depend on no time: they are saved in batches, fetched and confirmed in bundles, and
// cleaned up. With one event a batch it is what a trickle costs.
func measurePrice(ctx context.Context, r *scenarioRun) error {
	modelled := *r
	modelled.Endpoint = "" // it compares two readings of the published prices, which no real account offers
	r = &modelled
	lives := 0
	for _, batch := range []int{125, 1} {
		for _, standard := range []bool{false, true} {
			for _, l := range r.measuredLayouts() {
				r.reportProgress(float64(lives)/float64(4*len(r.measuredLayouts())), "%s, batches of %d", l.Name, batch)
				lives++
				life, err := lifeOf(ctx, l, r.Seed, batch, standard)
				if err != nil {
					return fmt.Errorf("%s: %w", l.Name, err)
				}
				life.reportPrice(r, l.Name, batch, standard)
			}
		}
	}
	return nil
}

// A life is what an event costs, in request units.
type life struct{ save, peek, dequeue, cleanUp float64 }

func (l life) totalUnits() float64 { return l.save + l.peek + l.dequeue + l.cleanUp }

func (l life) reportPrice(r *scenarioRun, name string, batch int, standard bool) {
	what := fmt.Sprintf("batches of %d, %s", batch, profileName(standard))
	var ofSave, ofLife *figure.Target
	if name == hub.Name && batch == 125 {
		ofSave, ofLife = figure.AtMost(0.5), figure.AtMost(1)
	}
	r.reportFigure(name, what+", save", l.save, figure.PerEvent, ofSave)
	r.reportFigure(name, what+", whole life", l.totalUnits(), figure.PerEvent, ofLife)
	r.reportCurve(figure.Bars, name+", "+what, figure.PerEvent,
		figure.Point{Label: "save", Y: l.save}, figure.Point{Label: "peek", Y: l.peek},
		figure.Point{Label: "dequeue", Y: l.dequeue}, figure.Point{Label: "clean-up", Y: l.cleanUp})
}

// profileName returns the name of the profile by which queries are charged.
func profileName(standard bool) string {
	if standard {
		return "standard"
	}
	return "pessimistic"
}

// lifeOf has events of one cabinet saved in batches of a size. There are as many as two
// drawers hold, so that what is paid once a drawer counts as often as it happens; of
// batches of one there are fewer, for one bundle, since all they cost is in each of
// them.
func lifeOf(ctx context.Context, l layout.Layout, seed uint64, batch int, standard bool) (found life, err error) {
	err = onNewAccount(ctx, account.Options{Standard: standard}, l, func(a *account.Account, line *account.Line, s *layout.Store) error {
		found, err = lifeOn(ctx, a, line, l, s, seed, batch)
		return err
	})
	return found, err
}

func lifeOn(ctx context.Context, a *account.Account, line *account.Line, l layout.Layout, s *layout.Store, seed uint64, batch int) (found life, err error) {
	src := eventSource{seed: seed}
	actor := src.newActor()
	n := 2 * atOnce
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

// sweepHub removes what has been acknowledged, as a hub does that keeps nothing: the
// first sweep notes how far that is, the second removes it.
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
