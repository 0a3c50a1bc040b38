package bench

import (
	"context"
	"time"
)

// hotActor sends nearly everything to one recipient. It asks what that one can take,
// and what the others notice of it: the same others are measured once with it and once
// without.
func hotActor(ctx context.Context, r *run) error {
	events := pick(r, 1000.0, 500.0)
	return r.hotActor(ctx, market{
		groups: []group{
			{size: 100, events: 0.1 * events, batch: 20, period: 2 * time.Second},
			{kind: "hot ", size: 1, events: 0.9 * events, batch: 20, period: 10 * time.Second},
		},
		lasts: pick(r, 2*time.Minute, 25*time.Second), settle: pick(r, 10*time.Second, 5*time.Second),
		has: throughput{catalog: 40_000, cabinet: 30_000, bundles: 30_000},
	})
}

func (r *run) hotActor(ctx context.Context, m market) error {
	with, err := r.hold(ctx, m, "with the hot one", 0, 0.5)
	if err != nil {
		return err
	}
	calm := m
	calm.groups = m.groups[:1]
	without, err := r.hold(ctx, calm, "without it", 0.5, 1)
	if err != nil {
		return err
	}
	r.figure("hub", "hot events a second", float64(with.events[1])/with.took.Seconds(), "1/s", nil)
	r.figure("hub", "hot oldest event at the end", with.oldest[1].Seconds(), "s", nil)
	for _, kind := range []string{"hot save", "hot peek", "hot dequeue", "save", "peek", "dequeue"} {
		r.latencies(with.result, kind, nil)
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
	r.generator(with.result)
	r.accounted("", with.stocks[0])
	r.accounted("hot ", with.stocks[1])
	r.used(with, m.has)
	return nil
}
