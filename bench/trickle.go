package bench

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
)

// measureTrickle sends single events to many recipients in rotation; then each recipient
// fetches and confirms its events. No layout is designed for this traffic. It is measured
// without payloads, with payloads, and on an account with Session consistency.
func measureTrickle(ctx context.Context, r *scenarioRun) error {
	variants := []trickleVariant{{}, {name: ", with payloads", payload: 300}, {name: ", on a Session account", consistency: "Session"}}
	if r.Endpoint != "" {
		variants = variants[:2] // the consistency level of a real account cannot be chosen
	}
	for i, v := range variants {
		err := r.runInNewSiteWith(ctx, v.consistency, func(p testSite) error {
			return v.measureLayouts(ctx, r, p.Account, float64(i)/float64(len(variants)), 1/float64(len(variants)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A trickleVariant is a variant of the scenario.
type trickleVariant struct {
	name        string // suffix of the figure names
	payload     int    // bytes of each event's payload; 0 means no payload
	consistency string
}

// measureLayouts measures each layout in a part of the scenario, which starts at from and has the
// length part. Both are fractions of the scenario's duration.
func (v trickleVariant) measureLayouts(ctx context.Context, r *scenarioRun, a *account.Account, from, part float64) error {
	if err := r.provisionAll(ctx, a); err != nil {
		return err
	}
	return r.eachLayoutWithin(from, part, func(l layout.Layout, progress progressFunc) error {
		return v.measureLayout(ctx, r, a, l, func(done float64, what string) { progress(done, "%s%s: %s", l.Name, v.name, what) })
	})
}

func (v trickleVariant) measureLayout(ctx context.Context, r *scenarioRun, a *account.Account, l layout.Layout, step func(float64, string)) error {
	line := a.Line()
	s, err := l.Open(ctx, a, line)
	if err != nil {
		return err
	}
	defer s.Close()
	src := eventSource{seed: r.Seed, payload: v.payload}
	actors := src.newActors(pickSize(r, 50, 10))
	const each = 6 // events per actor; the first event creates the head and is not counted
	var saves, fetches []cost
	for n := range each {
		step(0.7*float64(n)/each, "save")
		took, err := saveOneEach(ctx, s, line, &src, actors)
		if err != nil {
			return err
		}
		if n > 0 {
			saves = append(saves, took...)
		}
	}
	for i, actor := range actors {
		step(0.7+0.3*float64(i)/float64(len(actors)), "peek and dequeue")
		s.Settle(ctx, actor)
		before := line.Count()
		took, err := measureCost(line, func() error {
			bundle, err := openBundle(ctx, s, actor, src.newID())
			if err == nil && bundle.Count != each {
				err = fmt.Errorf("the bundle has %d events, want %d", bundle.Count, each)
			}
			if err == nil {
				_, err = s.Acknowledge(ctx, actor, bundle.ID)
			}
			return err
		})
		if err != nil {
			return err
		}
		s.Settle(ctx, actor)
		took.Count = line.Count().Since(before)
		fetches = append(fetches, took)
	}
	r.reportFigure(l.Name, "save of one event"+v.name+", p50", quantile(saves, 0.5, milliseconds), "ms", nil)
	r.reportFigure(l.Name, "save of one event"+v.name+", p99", quantile(saves, 0.99, milliseconds), "ms", nil)
	r.reportFigure(l.Name, "save of one event"+v.name+", request units", median(saves, units), "RU", nil)
	r.reportFigure(l.Name, "save of one event"+v.name+", requests", median(saves, requests), "requests", nil)
	r.reportFigure(l.Name, fmt.Sprintf("peek and dequeue of %d events%s, p50", each, v.name), quantile(fetches, 0.5, milliseconds), "ms", nil)
	r.reportFigure(l.Name, fmt.Sprintf("peek and dequeue of %d events%s, request units", each, v.name), median(fetches, units), "RU", nil)
	r.reportPercentiles(l.Name+", save of one event"+v.name, saves)
	return nil
}

// saveOneEach saves an event for each actor, one by one. A layout that collects events before it
// saves them saves all in one batch: the requests of the batch are divided by the number of events,
// and the time of the whole batch counts for each event.
func saveOneEach(ctx context.Context, s *layout.Store, l *account.Line, src *eventSource, actors []domain.ActorID) ([]cost, error) {
	var events []domain.Event
	for _, actor := range actors {
		events = append(events, src.newEvents(1, actor, 1)...)
	}
	costs := make([]cost, len(events))
	if s.Ingest != nil {
		took, err := measureCost(l, func() error { return s.Ingest(ctx, events) })
		took.Units /= float64(len(events))
		took.Requests /= int64(len(events))
		for i := range costs {
			costs[i] = took
		}
		return costs, err
	}
	for i := range events {
		var err error
		if costs[i], err = measureCost(l, func() error { return saveAll(ctx, s, actors[i], events[i:i+1]) }); err != nil {
			return nil, err
		}
	}
	return costs, nil
}
