package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/brokerrig"
	"github.com/messagehub/messagehub/bench/figure"
)

// measurePrice measures the request units of a delivery, including its share of the broadcast, for
// single messages and for 50 concurrent ones.
func (b *brokerBench) measurePrice(ctx context.Context) error {
	for _, load := range []struct {
		atATime, consumers int
		target             float64
	}{{1, 1, 30}, {1, 5, 18}, {50, 5, 1}} {
		cost, err := b.measureDeliveryPrice(ctx, load.atATime, load.consumers)
		if err != nil {
			return err
		}
		b.scenarioRun.reportFigure("hub", fmt.Sprintf("a delivery, %d messages at a time to %d consumers", load.atATime, load.consumers), cost, "RU", figure.AtMost(load.target))
	}
	return nil
}

// measureDeliveryPrice returns the request units of a delivery while atATime messages are broadcast
// concurrently. If atATime is 1, each message is sent after all deliveries of the previous message
// are stored.
func (b *brokerBench) measureDeliveryPrice(ctx context.Context, atATime, consumers int) (cost float64, err error) {
	r, err := brokerrig.Open(ctx, brokerrig.Options{Consumers: consumers, Latency: &account.DefaultPhysics(b.Seed).Latency})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.Run(ctx)
	if err := r.Broadcast(ctx, 1, 1); err != nil { // makes the engine load the cursors
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

// measureBacklog measures how much larger the broker's heap is when many messages wait for hanging
// consumers than when few do. The embedded engine of the account is in the same heap; its share is
// not counted.
func (b *brokerBench) measureBacklog(ctx context.Context) error {
	few, many := 1_000, pickSize(b.scenarioRun, 1_000_000, 100_000)
	var sizes [2]float64
	for i, n := range []int{few, many} {
		var err error
		if sizes[i], err = b.measureHeapWith(ctx, n); err != nil {
			return err
		}
	}
	// The target is a tenth of the memory that the broker may use for deliveries.
	b.reportFigure("hub", fmt.Sprintf("heap while %d messages wait, growth over %d", many, few), sizes[1]-sizes[0], "MB", figure.AtMost(heapLimit/10))
	return nil
}

// measureHeapWith returns the growth of the heap, in MB, when the broker serves two hanging
// consumers with n waiting messages.
func (b *brokerBench) measureHeapWith(ctx context.Context, n int) (mb float64, err error) {
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
