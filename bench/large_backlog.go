package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/domain"
)

// backlogScale is the factor by which the drawers and the memory for ids are smaller than their
// defaults. So the same number of events needs backlogScale times as many drawers.
const backlogScale = 100

// backlogOptions are the options of a hub whose sizes are divided by backlogScale.
var backlogOptions = cosmos.Options{DrawerCapacity: 10_000 / backlogScale, IndexBytes: (64 << 20) / backlogScale}

// measureLargeBacklog saves single events for one recipient with an increasing number of waiting
// events, and for two recipients alternately. The account simulates no latency and no throughput
// limits. Sizes are scaled: drawers hold 100 events and the memory for ids is a hundredth of its
// default, so that 1,000 waiting events correspond to 100,000.
func measureLargeBacklog(ctx context.Context, r *scenarioRun) error {
	modelled := *r
	modelled.Endpoint = ""
	r = &modelled
	a, err := account.Open(ctx, account.Options{})
	if err != nil {
		return err
	}
	return errors.Join(measureLargeBacklogOn(ctx, r, a), a.Close())
}

func measureLargeBacklogOn(ctx context.Context, r *scenarioRun, a *account.Account) error {
	if err := hub.Provision(ctx, a, perContainer); err != nil {
		return err
	}
	line := a.Line()
	s, stop, err := openHub(ctx, a, line, backlogOptions)
	if err != nil {
		return err
	}
	defer stop()
	full, stopFull, err := openHub(ctx, a, a.Unmetered(), cosmos.Options{DrawerCapacity: backlogOptions.DrawerCapacity})
	if err != nil {
		return err
	}
	defer stopFull()
	b := &backlog{filler: full, repository: s, line: line, src: eventSource{seed: r.Seed}, waiting: map[domain.ActorID]int{}}
	sizes := pickSize(r, []int{1_000, 10_000, 100_000, 400_000}, []int{1_000, 10_000})
	first, second := b.src.newActor(), b.src.newActor()
	var requestsOf []float64
	for i, size := range sizes {
		r.reportProgress(0.8*float64(i)/float64(len(sizes)), "fill up to %d events", size)
		if err := b.fillTo(ctx, first, size); err != nil {
			return err
		}
		took, err := b.measureSaves(ctx, first)
		if err != nil {
			return err
		}
		requestsOf = append(requestsOf, median(took, requests))
		reportSaves(r, fmt.Sprintf("save of one event with %d events waiting", size*backlogScale), took)
	}
	// Once the filters exceed the memory for ids, a Save needs one additional request. This does
	// not depend on the number of waiting events.
	r.reportFigure(hub.Name, "save of one event, requests, maximum minus minimum", slices.Max(requestsOf)-slices.Min(requestsOf), "requests", figure.AtMost(1))

	// The ids of one recipient of this size fit into the memory for ids; the ids of two recipients
	// do not.
	size := pickSize(r, 40_000, 4_000)
	r.reportProgress(0.9, "two recipients of %d events in turn", size)
	third := b.src.newActor()
	for _, actor := range []domain.ActorID{second, third} {
		if err := b.fillTo(ctx, actor, size); err != nil {
			return err
		}
	}
	alone, err := b.measureSaves(ctx, second)
	if err != nil {
		return err
	}
	inTurn, err := b.measureSaves(ctx, second, third)
	if err != nil {
		return err
	}
	reportSaves(r, fmt.Sprintf("save for one recipient of %d events", size*backlogScale), alone)
	reportSaves(r, fmt.Sprintf("save for one of two recipients of %d events in turn", size*backlogScale), inTurn)
	r.reportFigure(hub.Name, "save for two recipients alternately, request units, ratio to one", median(inTurn, units)/median(alone, units), "times", figure.AtMost(1.1))
	return nil
}

func reportSaves(r *scenarioRun, what string, costs []cost) {
	r.reportFigure(hub.Name, what+", request units", median(costs, units), "RU", nil)
	r.reportFigure(hub.Name, what+", requests", median(costs, requests), "requests", nil)
}

// A backlog holds the waiting events of recipients that do not fetch anything.
type backlog struct {
	filler     *cosmos.Repository // the node that fills the queues; it holds all ids in memory
	repository *cosmos.Repository // the measured node
	line       *account.Line
	src        eventSource
	waiting    map[domain.ActorID]int
}

// fillTo saves events, a thousand at a time, until size events are waiting.
func (b *backlog) fillTo(ctx context.Context, actor domain.ActorID, size int) error {
	for b.waiting[actor] < size {
		n := min(1_000, size-b.waiting[actor])
		saved, err := b.filler.Save(ctx, actor, b.src.newEvents(n, actor, 1))
		if err == nil && saved.Accepted != n {
			err = fmt.Errorf("%d of %d events were accepted", saved.Accepted, n)
		}
		if err != nil {
			return err
		}
		b.waiting[actor] += n
	}
	b.filler.AwaitHints(ctx, actor)
	return nil
}

// measureSaves saves single events for actors alternately, and returns the cost of each Save. The
// first Save for each actor is not returned, because it also reads documents that are not in
// memory.
func (b *backlog) measureSaves(ctx context.Context, actors ...domain.ActorID) (costs []cost, err error) {
	const rounds = 9
	for round := range rounds {
		for _, actor := range actors {
			before := b.line.Count()
			if _, err := b.repository.Save(ctx, actor, b.src.newEvents(1, actor, 1)); err != nil {
				return nil, err
			}
			b.repository.AwaitHints(ctx, actor)
			if round > 0 {
				costs = append(costs, cost{Count: b.line.Count().Since(before)})
			}
		}
	}
	return costs, nil
}
