package bench

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/market"
)

// measureManyActors runs a market under ordinary load: domains announce events to all recipients at
// the same rate, and each recipient peeks periodically and dequeues its bundles.
//
// The throughput is divided between the containers by their use: about two fifths of an event's
// charge are for the catalog, with the heads and entries. The rest is divided equally between the
// cabinet, with pages and drawers, and the bundles, with gates.
func measureManyActors(ctx context.Context, r *scenarioRun) error {
	return r.manyActors(ctx, market.Market{
		Groups: []market.Group{{Size: pickSize(r, 1000, 300), Events: pickSize(r, 2000.0, 1000.0), Batch: 20, Period: 10 * time.Second}},
		Lasts:  pickSize(r, 10*time.Minute, 30*time.Second), Settle: 10 * time.Second,
		Throughput: market.Throughput{Catalog: 40_000, Cabinet: 30_000, Bundles: 30_000},
	})
}

func (r *scenarioRun) manyActors(ctx context.Context, m market.Market) error {
	heap := new(heapSize)
	m.Beside = []load.Stream{{Arrivals: load.Every(m.Lasts/500, 0), Task: heap.addSample}}
	d, err := r.runMarket(ctx, m, "actors come and go", 0, 1)
	if err != nil {
		return err
	}
	r.reportFigure("hub", "events per second", float64(d.Groups[0].Events)/d.Took.Seconds(), "1/s", nil)
	r.reportLatencies(d, "peek", figure.AtMost(150))
	r.reportLatencies(d, "peek of nothing", nil)
	r.reportLatencies(d, "dequeue", figure.AtMost(100))
	r.reportLatencies(d, "save", nil)
	r.reportFigure("hub", "failed operations", float64(failedOperations(d)), "", figure.AtMost(0))
	r.reportGenerator(d)
	r.reportFigure("hub", "oldest event at the end", d.Groups[0].Oldest.Seconds(), "s", figure.AtMost(2*m.Groups[0].Period.Seconds()))
	r.reportDeliveries("", d.Groups[0].Stock)
	r.reportFigure("hub", "save to cleanup of an event", d.Life.Units()/float64(d.Groups[0].Saved), "RU", nil)
	r.reportUsage(d, m.Throughput)
	r.reportFigure("hub", "heap at the end", heap.endSize()/(1<<20), "MB", nil)
	// Most of the heap holds the ids of received events. The hub stores up to 64 MB of ids in
	// memory. This load fills the 64 MB after seven minutes, so the target holds only for the last
	// quarter. A quick run ends earlier and has no target.
	r.reportFigure("hub", "heap growth in the second half", heap.growsFrom(0.5), "%", nil)
	r.reportFigure("hub", "heap growth in the last quarter", heap.growsFrom(0.75), "%", pickSize(r, figure.AtMost(10), nil))
	return nil
}
