package bench

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/bench/market"
)

// hotActor sends nearly everything to one recipient. It asks what that one can take,
// and what the others notice of it: the same others are measured once with it and once
// without.
func hotActor(ctx context.Context, r *run) error {
	events := pick(r, 1000.0, 500.0)
	return r.hotActor(ctx, market.Market{
		Groups: []market.Group{
			{Size: 100, Events: 0.1 * events, Batch: 20, Period: 2 * time.Second},
			{Kind: "hot ", Size: 1, Events: 0.9 * events, Batch: 20, Period: 10 * time.Second},
		},
		Lasts: pick(r, 2*time.Minute, 25*time.Second), Settle: pick(r, 10*time.Second, 5*time.Second),
		Throughput: market.Throughput{Catalog: 40_000, Cabinet: 30_000, Bundles: 30_000},
	})
}

func (r *run) hotActor(ctx context.Context, m market.Market) error {
	with, err := r.hold(ctx, m, "with the hot one", 0, 0.5)
	if err != nil {
		return err
	}
	calm := m
	calm.Groups = m.Groups[:1]
	without, err := r.hold(ctx, calm, "without it", 0.5, 1)
	if err != nil {
		return err
	}
	r.figure("hub", "hot events a second", float64(with.Groups[1].Events)/with.Took.Seconds(), "1/s", nil)
	r.figure("hub", "hot oldest event at the end", with.Groups[1].Oldest.Seconds(), "s", nil)
	for _, kind := range []string{"hot save", "hot peek", "hot dequeue", "save", "peek", "dequeue"} {
		r.latencies(with, kind, nil)
	}
	for _, kind := range []string{"save", "peek", "dequeue"} {
		before, err := p99(without, kind)
		if err != nil {
			return err
		}
		beside, err := p99(with, kind)
		if err != nil {
			return err
		}
		r.figure("hub", kind+" p99 without the hot one", inMS(before), "ms", nil)
		r.figure("hub", kind+" p99 with it", float64(beside)/float64(before), "times", nil)
	}
	r.generator(with)
	r.accounted("", with.Groups[0].Stock)
	r.accounted("hot ", with.Groups[1].Stock)
	r.used(with, m.Throughput)
	return nil
}
