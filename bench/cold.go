package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
)

// measureColdHeads saves one event for each of many recipients whose heads a node has not read yet,
// and more events after the node has read the heads. The stored events of the recipients were saved
// one by one, and have one kind or many. Single Saves differ in cost: one Save in 24 moves a tail to
// a page, and a cold Save reads the pages that are not in a filter yet. So the stages with few
// recipients are repeated with several nodes.
func measureColdHeads(ctx context.Context, r *scenarioRun) error {
	return r.runInNewSite(ctx, func(p testSite) error {
		if err := r.provisionAll(ctx, p.Account); err != nil {
			return err
		}
		stages := []coldStage{
			{recipients: pickSize(r, 1_000, 30), stored: 10, kinds: 1, nodes: 1, warm: 1},
			{recipients: 1, stored: pickSize(r, 8_000, 300), kinds: 1, nodes: 12, warm: 5},
			{recipients: 3, stored: pickSize(r, 2_000, 300), kinds: pickSize(r, 999, 100), nodes: 4, warm: 5},
		}
		src := eventSource{seed: r.Seed}
		return r.eachLayout(func(l layout.Layout, progress progressFunc) error {
			for j, stage := range stages {
				progress(float64(j)/float64(len(stages)), "%s: %d recipients with %d events", l.Name, stage.recipients, stage.stored)
				if err := stage.measure(ctx, r, p.Account, l, &src); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// A coldStage is the size of a measurement. Each recipient has a number of stored events, of a
// number of kinds. Each node saves to every recipient once, and then warm more times.
type coldStage struct{ recipients, stored, kinds, nodes, warm int }

func (c coldStage) measure(ctx context.Context, r *scenarioRun, a *account.Account, l layout.Layout, src *eventSource) error {
	actors := src.newActors(c.recipients)
	if err := c.fillStore(ctx, a, l, src, actors); err != nil {
		return err
	}
	var first, later []cost
	for range c.nodes {
		cold, warm, err := c.measureFirstSaves(ctx, a, l, src, actors)
		if err != nil {
			return err
		}
		first, later = append(first, cold...), append(later, warm...)
	}
	with := fmt.Sprintf(" with %d events stored", c.stored)
	if c.kinds > 1 {
		with = fmt.Sprintf(" with %d events of %d kinds stored", c.stored, c.kinds)
	}
	for _, part := range []struct {
		name  string
		costs []cost
	}{{"cold save" + with, first}, {"warm save" + with, later}} {
		r.reportFigure(l.Name, part.name+", p50", quantile(part.costs, 0.5, milliseconds), "ms", nil)
		if c.recipients > 1 {
			r.reportFigure(l.Name, part.name+", p99", quantile(part.costs, 0.99, milliseconds), "ms", nil)
		}
		r.reportFigure(l.Name, part.name+", request units", mean(part.costs, units), "RU", nil)
		r.reportFigure(l.Name, part.name+", requests", mean(part.costs, requests), "requests", nil)
	}
	var target *figure.Target
	if l.Name == hub.Name {
		target = figure.AtMost(3)
	}
	r.reportFigure(l.Name, "cold save"+with+", request units, ratio to warm", mean(first, units)/mean(later, units), "times", target)
	return nil
}

// measureFirstSaves opens a new node, which saves one event to each recipient, and then c.warm
// more.
func (c coldStage) measureFirstSaves(ctx context.Context, a *account.Account, l layout.Layout, src *eventSource, actors []domain.ActorID) (cold, warm []cost, err error) {
	line := a.Line()
	s, err := l.Open(ctx, a, line)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	if _, err := s.Watermark(ctx, src.newActor()); err != nil { // makes the client read the properties of the account
		return nil, nil, err
	}
	if cold, err = saveOneEach(ctx, s, line, src, actors); err != nil {
		return nil, nil, err
	}
	for range c.warm {
		costs, err := saveOneEach(ctx, s, line, src, actors)
		if err != nil {
			return nil, nil, err
		}
		warm = append(warm, costs...)
	}
	return cold, warm, nil
}

// fillStore saves the stored events without the modelled latency and charges. The hub saves the
// events of a recipient one by one, because its documents depend on the size of a Save. The other
// layouts have a document for each event, so they save all events in one call.
func (c coldStage) fillStore(ctx context.Context, a *account.Account, l layout.Layout, src *eventSource, actors []domain.ActorID) error {
	s, err := l.Open(ctx, a, a.Unmetered())
	if err != nil {
		return err
	}
	defer s.Close()
	batch := c.stored
	if l.Name == hub.Name {
		batch = 1
	}
	saves := make([][][]domain.Event, len(actors)) // events are created in a fixed order, although they are saved concurrently
	for a, actor := range actors {
		for i := range c.stored / batch {
			events := src.newEvents(batch, actor, 1)
			for j := range events {
				if c.kinds > 1 {
					events[j].ContentType = contentTypeOf((i*batch + j) % c.kinds)
				}
			}
			saves[a] = append(saves[a], events)
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for a, actor := range actors {
		g.Go(func() error {
			for _, events := range saves[a] {
				if err := saveAll(gctx, s, actor, events); err != nil {
					return fmt.Errorf("fill: %w", err)
				}
			}
			s.Settle(gctx, actor)
			return nil
		})
	}
	return g.Wait()
}
