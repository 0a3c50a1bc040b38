package bench

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/bench/market"
)

// measureHotActor sends nearly all events to one recipient. It measures the throughput of that
// recipient, and its effect on all other recipients, which are measured once with and once without
// that recipient.
func measureHotActor(ctx context.Context, r *scenarioRun) error {
	events := pickSize(r, 1000.0, 500.0)
	return r.hotActor(ctx, market.Market{
		Groups: []market.Group{
			{Size: 100, Events: 0.1 * events, Batch: 20, Period: 2 * time.Second},
			{Kind: "hot ", Size: 1, Events: 0.9 * events, Batch: 20, Period: 10 * time.Second},
		},
		Lasts: pickSize(r, 2*time.Minute, 25*time.Second), Settle: pickSize(r, 10*time.Second, 5*time.Second),
		Throughput: market.Throughput{Catalog: 40_000, Cabinet: 30_000, Bundles: 30_000},
	})
}

func (r *scenarioRun) hotActor(ctx context.Context, m market.Market) error {
	with, err := r.runMarket(ctx, m, "with the hot one", 0, 0.5)
	if err != nil {
		return err
	}
	calm := m
	calm.Groups = m.Groups[:1]
	without, err := r.runMarket(ctx, calm, "without it", 0.5, 1)
	if err != nil {
		return err
	}
	r.reportFigure("hub", "events per second of the hot recipient", float64(with.Groups[1].Events)/with.Took.Seconds(), "1/s", nil)
	r.reportFigure("hub", "oldest event of the hot recipient at the end", with.Groups[1].Oldest.Seconds(), "s", nil)
	for _, kind := range []string{"hot save", "hot peek", "hot dequeue", "save", "peek", "dequeue"} {
		r.reportLatencies(with, kind, nil)
	}
	for _, kind := range []string{"save", "peek", "dequeue"} {
		before, err := latencyP99(without, kind)
		if err != nil {
			return err
		}
		beside, err := latencyP99(with, kind)
		if err != nil {
			return err
		}
		r.reportFigure("hub", kind+" p99 without the hot recipient", inMS(before), "ms", nil)
		r.reportFigure("hub", kind+" p99 with it", float64(beside)/float64(before), "times", nil)
	}
	r.reportGenerator(with)
	r.reportDeliveries("", with.Groups[0].Stock)
	r.reportDeliveries("hot ", with.Groups[1].Stock)
	r.reportUsage(with, m.Throughput)
	return nil
}
