package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/domain"
)

// measureBusyRecipient sends single events to one recipient, at several rates, like many
// independent domains. The hub combines the events that arrive during a Save into the next Save.
// Each rate is measured twice, because faster Saves combine fewer events in each write: with the
// newest events in the head, and with all events in pages.
func measureBusyRecipient(ctx context.Context, r *scenarioRun) error {
	return r.runInNewSite(ctx, func(p testSite) error {
		if err := hub.Provision(ctx, p.Account, perContainer); err != nil {
			return err
		}
		src := eventSource{seed: r.Seed}
		rates := pickSize(r, []int{1, 30, 100, 200, 500, 1_000, 2_000}, []int{30, 500})
		for i, rate := range rates {
			r.reportProgress(float64(i)/float64(len(rates)), "%d events/s", rate)
			lasts := pickSize(r, 10*time.Second, 4*time.Second)
			paged, err := measureBusyRate(ctx, p, &src, rate, lasts, -1)
			if err != nil {
				return err
			}
			tailed, err := measureBusyRate(ctx, p, &src, rate, lasts, cosmos.DefaultTailEvents)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("save at %d events/s", rate)
			r.reportFigure(hub.Name, what+", request units", tailed.units, "RU/event", nil)
			r.reportFigure(hub.Name, what+", p50", tailed.p50, "ms", nil)
			r.reportFigure(hub.Name, what+", p99", tailed.p99, "ms", nil)
			r.reportFigure(hub.Name, what+" without tails, request units", paged.units, "RU/event", nil)
			r.reportFigure(hub.Name, what+" without tails, p50", paged.p50, "ms", nil)
			r.reportFigure(hub.Name, what+", request units, ratio to without tails", tailed.units/paged.units, "times", figure.AtMost(1.05))
		}
		return nil
	})
}

// busySaves is the cost of Saves for a recipient that receives many single events.
type busySaves struct {
	units    float64 // per event
	p50, p99 float64 // milliseconds since the due time of the event
}

// measureBusyRate saves single events for a new recipient at a rate, with up to tailEvents events
// in the head.
func measureBusyRate(ctx context.Context, p testSite, src *eventSource, rate int, lasts time.Duration, tailEvents int) (found busySaves, err error) {
	line := p.Line()
	repository, stop, err := openHub(ctx, p.Account, line, cosmos.Options{TailEvents: tailEvents})
	if err != nil {
		return found, err
	}
	defer stop()
	actor := src.newActor()
	events := src.newEvents(2*int(lasts.Seconds())*rate+100, actor, 1)
	if _, err := repository.Save(ctx, actor, events[:1]); err != nil { // creates the head
		return found, err
	}
	repository.AwaitHints(ctx, actor)
	before := line.Count()
	var saved atomic.Int64
	task := func(ctx context.Context) load.Outcome {
		n := saved.Add(1)
		took, err := repository.Save(ctx, actor, events[n:n+1:n+1])
		switch {
		case err != nil:
			return load.Outcome{Kind: "save", Failed: domain.KindOf(err).String()}
		case took.Accepted != 1:
			return load.Outcome{Kind: "save", Failed: "not accepted"}
		}
		return load.Outcome{Kind: "save"}
	}
	result, err := load.Run(ctx, load.Plan{
		Lasts:   lasts,
		Streams: []load.Stream{{Arrivals: load.Poisson(float64(rate), rand.New(rand.NewPCG(src.seed, uint64(rate)))), Task: task}}, //nolint:gosec // the rate is positive
	})
	if err != nil {
		return found, err
	}
	if failures := result.Failures(); len(failures) > 0 {
		return found, errors.New(fmt.Sprint("Saves failed: ", failures))
	}
	repository.AwaitHints(ctx, actor)
	found.units = line.Count().Since(before).Units / float64(saved.Load())
	latencies := result.LatenciesOf("save")
	found.p50, found.p99 = inMS(latencies.Percentile(50)), inMS(latencies.Percentile(99))
	return found, nil
}
