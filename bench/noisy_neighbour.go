package bench

import (
	"context"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/market"
)

// measureNoisyNeighbour throttles all requests to the partitions of one recipient. Meanwhile events
// are sent to that recipient, and more of its clients peek than the hub serves concurrently. The
// scenario measures all other recipients with and without the throttled recipient, in alternating
// rounds. Each round has a new hub and account.
func measureNoisyNeighbour(ctx context.Context, r *scenarioRun) error {
	return r.noisyNeighbour(ctx, market.Market{
		Groups: []market.Group{
			{Size: 100, Events: 1000, Batch: 20, Period: time.Second},
			{Kind: noisy, Size: 1, Events: 100, Batch: 20, Period: 100 * time.Millisecond, AtOnce: 64},
		},
		Lasts: pickSize(r, 40*time.Second, 10*time.Second), Settle: pickSize(r, 10*time.Second, 2*time.Second),
		Throughput: market.Throughput{Catalog: 40_000, Cabinet: 30_000, Bundles: 30_000},
	}, pickSize(r, 5, 3))
}

const noisy = "noisy "

func (r *scenarioRun) noisyNeighbour(ctx context.Context, m market.Market, rounds int) error {
	noise := &market.Throttle{Recipient: "noisy-0000", Wait: 100 * time.Millisecond}
	with, without := newMarketRounds(), newMarketRounds()
	for round := range rounds {
		done := float64(round) / float64(rounds)
		calm := m
		calm.Groups = m.Groups[:1]
		d, err := r.runMarket(ctx, calm, "without the noisy one", done, done+0.5/float64(rounds))
		if err == nil {
			err = without.addDay(d)
		}
		if err != nil {
			return err
		}
		beset := m
		beset.Around, beset.Beside = noise.Around, []load.Stream{noise.TurnOnAt(m.Settle / 2), noise.TurnOffBefore(m.Lasts)}
		d, err = r.runMarket(ctx, beset, "with the noisy one", done+0.5/float64(rounds), done+1/float64(rounds))
		if err == nil {
			err = with.addDay(d)
		}
		if err != nil {
			return err
		}
		if round == rounds-1 {
			r.reportGenerator(d)
			r.reportDeliveries(noisy, d.Groups[1].Stock)
		}
	}
	for _, kind := range []string{"save", "peek", "dequeue"} {
		before, beside := median(without.p99[kind], inMS), median(with.p99[kind], inMS)
		r.reportFigure("hub", kind+" p99 without the noisy recipient", before, "ms", nil)
		r.reportFigure("hub", kind+" p99 with it", beside, "ms", nil)
		r.reportFigure("hub", kind+" p99 with it", beside/before, "times", figure.AtMost(1.25))
	}
	r.reportFigure("hub", "requests of the noisy recipient refused", float64(noise.Refused()), "", nil)
	r.reportFigure("hub", "failed operations of the others", float64(with.failed+without.failed), "", figure.AtMost(0))
	with.others.Add(without.others)
	r.reportDeliveries("", with.others)
	return nil
}

// marketRounds collects the results of the recipients that are not throttled, from several rounds
// of the same market.
type marketRounds struct {
	p99    map[string][]time.Duration // p99 of each kind of operation; one value per round
	failed int                        // number of failed operations
	others market.Stock
}

func newMarketRounds() *marketRounds { return &marketRounds{p99: make(map[string][]time.Duration)} }

func (t *marketRounds) addDay(d *market.Day) error {
	for _, kind := range []string{"save", "peek", "dequeue"} {
		took, err := latencyP99(d, kind)
		if err != nil {
			return err
		}
		t.p99[kind] = append(t.p99[kind], took)
	}
	for kind, n := range d.Failures() {
		if !strings.HasPrefix(kind, noisy) {
			t.failed += n
		}
	}
	t.others.Add(d.Groups[0].Stock)
	return nil
}
