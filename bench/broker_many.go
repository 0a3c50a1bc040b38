package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/receivers"
)

// A consumerCrowd is a channel with many consumers, which are served by a separate server.
type consumerCrowd struct {
	producer  *receivers.Producer
	server    *receivers.Server
	consumers int
}

// measureManyConsumers measures a consumer alone, and while a message is broadcast to ten thousand
// other consumers of the same hub, in alternating rounds. It compares the heap at the end with the
// heap after the first message to all those consumers.
func (b *brokerBench) measureManyConsumers(ctx context.Context) (err error) {
	s, err := receivers.Serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return b.runAtBroker(ctx, b.receiverURLs(1), func(p *receivers.Producer) error {
		c := &consumerCrowd{server: s, consumers: pickSize(b.scenarioRun, 10_000, 1_000)}
		c.producer = &receivers.Producer{Client: p.Client, URL: p.URL, Token: p.Token, Channel: "crowd", Bytes: p.Bytes}
		callbacks := make([]string, c.consumers)
		for i := range callbacks {
			callbacks[i] = s.URL(i)
		}
		if err := c.producer.Create(ctx, callbacks...); err != nil {
			return err
		}
		if err := c.broadcastMessage(ctx, b.newMessage()); err != nil {
			return err
		}
		before := float64(heapInUse())
		var alone, beside []float64
		for range pickSize(b.scenarioRun, 5, 3) {
			for _, isBeside := range []bool{false, true} {
				p99, err := b.measureWithCrowd(ctx, p, c, isBeside)
				if err != nil {
					return err
				}
				if isBeside {
					beside = append(beside, p99)
				} else {
					alone = append(alone, p99)
				}
			}
		}
		b.reportFigure("hub", fmt.Sprintf("p99 beside a message to %d consumers of another channel, ratio to alone", c.consumers), median(beside, asIs)/median(alone, asIs), "times", figure.AtMost(1.25))
		b.server.Expect(0)
		s.Expect(0)
		b.reportFigure("hub", fmt.Sprintf("heap after messages to %d consumers, ratio to the first message", c.consumers), float64(heapInUse())/before, "times", figure.AtMost(1.1))
		return nil
	})
}

// broadcastMessage sends a message, and returns when all consumers have
// received it.
func (c *consumerCrowd) broadcastMessage(ctx context.Context, message string) error {
	all := c.server.Expect(c.consumers)
	if err := c.producer.Send(ctx, c.server, time.Now(), message); err != nil {
		return err
	}
	return waitUntilClosed(ctx, all)
}

// measureWithCrowd returns the p99 of a consumer in milliseconds. If isBeside is true, the crowd c
// receives a message during the measurement.
func (b *brokerBench) measureWithCrowd(ctx context.Context, p *receivers.Producer, c *consumerCrowd, isBeside bool) (float64, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return b.broadcastSteadily(gctx, p, p, pickSize(b.scenarioRun, 12*time.Second, 6*time.Second))
	})
	if isBeside {
		g.Go(func() error {
			select {
			case <-time.After(3 * time.Second): // the first two seconds are not counted
				return c.broadcastMessage(gctx, b.newMessage())
			case <-gctx.Done():
				return gctx.Err()
			}
		})
	}
	err := g.Wait()
	return inMS(b.server.Latencies().Percentile(99)), err
}
