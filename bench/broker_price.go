package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/brokerrig"
	"github.com/messagehub/messagehub/bench/figure"
)

// measurePrice measures what a delivery costs in request units, its share of the broadcast included: of
// messages that are broadcast alone, and of 50 at a time.
func (b *brokering) measurePrice(ctx context.Context) error {
	for _, load := range []struct {
		atATime, consumers int
		target             float64
	}{{1, 1, 30}, {1, 5, 18}, {50, 5, 1}} {
		cost, err := b.priceOf(ctx, load.atATime, load.consumers)
		if err != nil {
			return err
		}
		b.scenarioRun.reportFigure("hub", fmt.Sprintf("a delivery, %d at a time to %d", load.atATime, load.consumers), cost, "RU", figure.AtMost(load.target))
	}
	return nil
}

// priceOf returns the request units for a delivery, while atATime messages are broadcast at the same time. One
// that is alone follows when all deliveries of the one before are stored.
func (b *brokering) priceOf(ctx context.Context, atATime, consumers int) (cost float64, err error) {
	r, err := brokerrig.Open(ctx, brokerrig.Options{Consumers: consumers, Latency: &account.DefaultPhysics(b.Seed).Latency})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.Run(ctx)
	if err := r.Broadcast(ctx, 1, 1); err != nil { // the engine loads the cursors
		return 0, err
	}
	rounds, messages := pickSize(b.scenarioRun, 100, 20), 1
	if atATime > 1 {
		rounds, messages = 1, pickSize(b.scenarioRun, 200, 40)*atATime
	}
	before := r.RequestUnits()
	for range rounds {
		if err := r.Broadcast(ctx, messages, atATime); err != nil {
			return 0, err
		}
	}
	return (r.RequestUnits() - before) / float64(rounds*messages*consumers), nil
}

// measureBacklog compares the heap of the broker while many messages wait for consumers that hang with that
// while few wait. The engine of the account is in memory, too, and is not counted.
func (b *brokering) measureBacklog(ctx context.Context) error {
	few, many := 1_000, pickSize(b.scenarioRun, 1_000_000, 100_000)
	var sizes [2]float64
	for i, n := range []int{few, many} {
		var err error
		if sizes[i], err = b.sizeWith(ctx, n); err != nil {
			return err
		}
	}
	// A tenth of what the broker may need for deliveries.
	b.reportFigure("hub", fmt.Sprintf("heap while %d messages wait, above that with %d", many, few), sizes[1]-sizes[0], "MB", figure.AtMost(heapLimit/10))
	return nil
}

// sizeWith returns by how many MB the heap is larger while n messages wait for two consumers that hang
// than before the broker serves them.
func (b *brokering) sizeWith(ctx context.Context, n int) (mb float64, err error) {
	r, err := brokerrig.Open(ctx, brokerrig.Options{Consumers: 2, Hangs: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.Append(ctx, n); err != nil {
		return 0, err
	}
	before := heapInUse()
	r.Run(ctx)
	if err := r.AwaitCalls(ctx); err != nil {
		return 0, err
	}
	return (float64(heapInUse()) - float64(before)) / (1 << 20), nil
}
