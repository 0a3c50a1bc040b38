package bench

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
)

// manyActors is a market on an ordinary day: domains announce to all recipients alike,
// and each peeks by its own clock and dequeues what it got.
//
// The throughput is split as it is used: of the requests for an event about two fifths
// of the charge are for the head and the entries, in the catalog, and the rest is for
// pages and drawers and for gates and bundles, in equal parts.
func manyActors(ctx context.Context, r *run) error {
	return r.manyActors(ctx, market{
		groups: []group{{size: pick(r, 1000, 300), events: pick(r, 2000.0, 1000.0), batch: 20, period: 10 * time.Second}},
		lasts:  pick(r, 10*time.Minute, 30*time.Second), settle: 10 * time.Second,
		has: throughput{catalog: 40_000, cabinet: 30_000, bundles: 30_000},
	})
}

func (r *run) manyActors(ctx context.Context, m market) error {
	heap := new(heapSize)
	m.beside = []load.Stream{{Arrivals: load.Every(m.lasts/500, 0), Task: heap.look}}
	d, err := r.hold(ctx, m, "actors come and go", 0, 1)
	if err != nil {
		return err
	}
	r.figure("hub", "events a second", float64(d.events[0])/d.took.Seconds(), "1/s", nil)
	r.latencies(d.result, "peek", figure.AtMost(150))
	r.latencies(d.result, "peek of nothing", nil)
	r.latencies(d.result, "dequeue", figure.AtMost(100))
	r.latencies(d.result, "save", nil)
	r.figure("hub", "operations that failed", float64(failed(d.result)), "", figure.AtMost(0))
	r.generator(d.result)
	r.figure("hub", "oldest event at the end", d.oldest[0].Seconds(), "s", figure.AtMost(2*m.groups[0].period.Seconds()))
	r.accounted("", d.stocks[0])
	r.figure("hub", "whole life of an event", d.life.units()/float64(d.stocks[0].saved), "RU", nil)
	r.used(d, m.has)
	r.figure("hub", "heap at the end", heap.end()/(1<<20), "MB", nil)
	// In a quick run the heap has not found its size by the end.
	r.figure("hub", "heap grows in the second half", heap.grows(), "%", pick(r, figure.AtMost(10), nil))
	return nil
}
