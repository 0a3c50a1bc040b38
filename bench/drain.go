package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/domain"
)

// drainBundle is the number of events in each bundle; five bundles fill a drawer.
const drainBundle = 2000

// measureDrain fetches and confirms 100,000 events of one cabinet in bundles of 2,000.
func measureDrain(ctx context.Context, r *scenarioRun) error {
	return r.runInNewSite(ctx, func(p testSite) error { return drainAt(ctx, r, p.Account) })
}

func drainAt(ctx context.Context, r *scenarioRun, a *account.Account) error {
	if err := hub.Provision(ctx, a, perContainer); err != nil {
		return err
	}

	const bundles = 50
	src := eventSource{seed: r.Seed}
	actor := src.newActor()
	r.reportProgress(0, "fill")
	if err := fillStore(ctx, hub, a, actor, drainEvents(&src, actor, bundles)); err != nil {
		return err
	}
	line := a.Line()
	s, err := hub.Open(ctx, a, line)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Watermark(ctx, actor); err != nil { // makes the client read the properties of the account
		return err
	}
	costs := make([]cost, bundles)
	for i := range costs {
		r.reportProgress(float64(i)/bundles, "bundle %d of %d", i+1, bundles)
		costs[i], err = measureCost(line, func() error {
			bundle, err := openBundle(ctx, s, actor, src.newID())
			if err != nil {
				return err
			}
			if bundle.Count != drainBundle {
				return fmt.Errorf("bundle %d has %d events, want %d", i+1, bundle.Count, drainBundle)
			}
			if _, err = s.Acknowledge(ctx, actor, bundle.ID); err == nil {
				s.Settle(ctx, actor)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if _, err := s.NextUnacknowledged(ctx, actor, allGroups); !errors.Is(err, domain.ErrNoData) {
		return fmt.Errorf("the queue is not empty after %d bundles: %w", bundles, err)
	}
	first, last := costs[0], costs[bundles-1]
	for i, c := range []cost{first, last} {
		name := []string{"bundle 1", "bundle 50"}[i]
		r.reportFigure("hub", name+", requests", requests(c), "requests", nil)
		r.reportFigure("hub", name+", request units", units(c), "RU", nil)
	}
	r.reportFigure("hub", "requests of bundle 50, ratio to bundle 1", requests(last)/requests(first), "times", figure.AtMost(1.1))
	r.reportFigure("hub", "request units of bundle 50, ratio to bundle 1", units(last)/units(first), "times", figure.AtMost(1.1))
	r.reportFigure("hub", "most expensive bundle, ratio to the median", quantile(costs, 1, units)/median(costs, units), "times", nil)
	r.reportFigure("hub", "peek and dequeue, p50", median(costs, milliseconds), "ms", nil)
	var points []figure.Point
	for i, c := range costs {
		points = append(points, figure.Point{X: float64((i + 1) * drainBundle), Y: units(c)})
	}
	r.reportCurve(figure.Growth, "hub, a bundle after so many events", "RU", points...)
	return nil
}

// drainEvents returns events of 25 KB. The last event of each bundle is larger, so that the bundle is
// full.
func drainEvents(src *eventSource, to domain.ActorID, bundles int) []domain.Event {
	const weight = domain.MaxBundleWeight / drainBundle // rounded down; the last event of a bundle adds the remainder
	events := src.newEvents(bundles*drainBundle, to, weight)
	for i := drainBundle - 1; i < len(events); i += drainBundle {
		events[i].Weight = domain.MaxBundleWeight - (drainBundle-1)*weight
	}
	return events
}
