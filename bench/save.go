package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
)

// measureSave measures the first Save of a full bundle's events with each layout. It also compares
// later Saves of 10,000 events with the bare requests of the hub's protocol.
func measureSave(ctx context.Context, r *scenarioRun) error {
	return r.runInNewSite(ctx, func(p testSite) error { return saveAt(ctx, r, p.Account) })
}

func saveAt(ctx context.Context, r *scenarioRun, a *account.Account) error {
	if err := measureFirstSave(ctx, r, a); err != nil {
		return err
	}
	return saveBesideLimit(ctx, r, a)
}

// measureFirstSave saves the same events with each layout, in calls of at most 10,000.
func measureFirstSave(ctx context.Context, r *scenarioRun, a *account.Account) error {
	n := pickSize(r, int(worstEvents), 2*maxSaveEvents)
	src := eventSource{seed: r.Seed}
	actor := src.newActor()
	events := src.newEvents(n, actor, 1)
	if err := r.provisionAll(ctx, a); err != nil {
		return err
	}
	var hubs cost
	for i, l := range r.measuredLayouts() {
		r.reportProgress(float64(i)/float64(len(r.measuredLayouts()))*0.8, "first save of %d events: %s", n, l.Name)
		took, err := saveOnce(ctx, l, a, actor, events)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		what := fmt.Sprintf("first save of %d events", n)
		r.reportFigure(l.Name, what+", time", seconds(took), "s", nil)
		r.reportFigure(l.Name, what+", request units", took.Units/float64(n), "RU/event", nil)
		r.reportFigure(l.Name, what+", requests", float64(took.Requests)/float64(n), "requests/event", nil)
		if l.Name == hub.Name {
			hubs = took
			continue
		}
		r.reportFigure(l.Name, what+", time, ratio to the hub", seconds(took)/seconds(hubs), "times", nil)
	}
	return nil
}

// saveOnce measures a Save through a new store over open connections, as in a process that has just
// started. It includes the requests of the store's background work.
func saveOnce(ctx context.Context, l layout.Layout, a *account.Account, to domain.ActorID, events []domain.Event) (cost, error) {
	line := a.Line()
	s, err := l.Open(ctx, a, line)
	if err != nil {
		return cost{}, err
	}
	defer s.Close()
	if _, err := s.Watermark(ctx, to); err != nil { // makes the client read the properties of the account
		return cost{}, err
	}
	before := line.Count()
	took, err := measureCost(line, func() error { return saveAll(ctx, s, to, events) })
	s.Settle(ctx, to)
	took.Count = line.Count().Since(before)
	return took, err
}

// saveBesideLimit repeatedly saves 10,000 events to a recipient with waiting events, alternating
// with the bare requests for as many events. Each Save begins in a new drawer, so that the hub and
// the bare requests write the same pages.
func saveBesideLimit(ctx context.Context, r *scenarioRun, a *account.Account) error {
	if err := hub.Provision(ctx, a, perContainer); err != nil {
		return err
	}
	src := eventSource{seed: r.Seed + 1}
	actor := src.newActor()
	ready := src.newEvents(2*maxSaveEvents, actor, 1)
	if err := fillStore(ctx, hub, a, actor, ready[:maxSaveEvents]); err != nil {
		return err
	}
	stored, err := readStored(ctx, a, ready[0].Cabinet())
	if err != nil {
		return err
	}
	line, bareLine := a.Line(), a.Line()
	s, err := hub.Open(ctx, a, line)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := saveAll(ctx, s, actor, ready[maxSaveEvents:]); err != nil { // the first Save makes the store read the existing documents
		return err
	}
	bare, stop, err := openLimit(a, bareLine)
	if err != nil {
		return err
	}
	defer stop()
	beforehand, stopBeforehand, err := openLimit(a, a.Unmetered())
	if err != nil {
		return err
	}
	defer stopBeforehand()

	costs := map[string][]cost{}
	times := pickSize(r, 15, 5)
	for i := range times {
		r.reportProgress(0.8+0.2*float64(i)/float64(times), "save of 10,000 events, beside the limit")
		events := src.newEvents(maxSaveEvents, actor, 1)
		before := line.Count()
		took, err := measureCost(line, func() error { return saveAll(ctx, s, actor, events) })
		if err != nil {
			return err
		}
		s.Settle(ctx, actor)
		took.Count = line.Count().Since(before) // includes the requests in the background
		costs["hub"] = append(costs["hub"], took)

		least, err := beforehand.Prepare(ctx, stored)
		if err != nil {
			return err
		}
		if i == 0 { // makes the client read the properties of the account
			if _, err := bare.Read(ctx, ready[0].Cabinet()); err != nil {
				return err
			}
		}
		if took, err = measureCost(bareLine, func() error { return bare.Save(ctx, least) }); err != nil {
			return fmt.Errorf("limit: %w", err)
		}
		costs["limit"] = append(costs["limit"], took)
	}
	for _, name := range slices.Sorted(slices.Values([]string{"limit", "hub"})) {
		r.reportFigure(name, "save of 10,000 events, time", median(costs[name], milliseconds), "ms", nil)
		r.reportFigure(name, "save of 10,000 events, request units", median(costs[name], units), "RU", nil)
		r.reportFigure(name, "save of 10,000 events, requests", median(costs[name], requests), "requests", nil)
	}
	r.reportFigure("hub", "save of 10,000 events, time, ratio to the limit", median(costs["hub"], seconds)/median(costs["limit"], seconds), "times", figure.AtMost(1.5))
	return nil
}
