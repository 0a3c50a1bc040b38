package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/receivers"
	"github.com/messagehub/messagehub/bench/service"
)

// brokerRate is the number of messages that are broadcast per second while a consumer
// hangs.
const brokerRate = 50

// heapLimit is the maximum growth of the heap, in MB, while the broker delivers.
const heapLimit = 100

// A brokerBench broadcasts messages to a node, each in a separate request, and times the calls of
// their consumers.
type brokerBench struct {
	*pushBench
	messages atomic.Int64
}

// measureBroker broadcasts messages to consumers. The hub, its embedded engine with fsync,
// producers and consumers share this machine. Every measurement starts a new node.
func measureBroker(ctx context.Context, r *scenarioRun) (err error) {
	s, err := receivers.Serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	b := &brokerBench{pushBench: &pushBench{
		scenarioRun: r, server: s, events: pickSize(r, 10_000, 2_000), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}}
	defer b.client.CloseIdleConnections()
	steps := []func(context.Context) error{b.measureThroughput, b.measureBurst, b.measureWithHanging, b.measureMemory, b.measurePrice, b.measureBacklog, b.measureKill, b.measureManyConsumers}
	for i, step := range steps {
		r.reportProgress(float64(i)/float64(len(steps)), "broadcast %d messages of %d bytes", b.events, pushBytes)
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measureThroughput compares a hub with a relay, in alternating rounds, for one consumer and for
// five. Hub and relay have the same limit for concurrent calls to one consumer.
func (b *brokerBench) measureThroughput(ctx context.Context) error {
	for _, load := range []struct {
		producers, consumers int
		target               float64
	}{{16, 1, 2000}, {50, 5, 3000}} {
		var hub, relay []float64
		for range pickSize(b.scenarioRun, 5, 3) {
			took, err := b.drainRelay(ctx, load.producers, load.consumers)
			if err != nil {
				return fmt.Errorf("relay to %d consumers: %w", load.consumers, err)
			}
			relay = append(relay, b.perSecond(load.consumers, took))
			err = b.runAtBusyBroker(ctx, b.receiverURLs(load.consumers), func(p *receivers.Producer) error {
				took, err = b.drainHub(ctx, p, load.producers, load.consumers)
				return err
			})
			if err != nil {
				return fmt.Errorf("hub to %d consumers: %w", load.consumers, err)
			}
			hub = append(hub, b.perSecond(load.consumers, took))
		}
		name := fmt.Sprintf("%d producers, deliveries to %d", load.producers, load.consumers)
		b.reportFigure("hub", name, median(hub, asIs), "1/s", figure.AtLeast(load.target))
		b.reportFigure("relay", name, median(relay, asIs), "1/s", nil)
		b.reportFigure("hub", name+", ratio to the relay", median(hub, asIs)/median(relay, asIs), "times", figure.AtLeast(0.4))
	}
	return nil
}

// measureBurst broadcasts all messages to five consumers as fast as the hub accepts them. It
// compares the p99 of the deliveries with the duration of the whole burst.
func (b *brokerBench) measureBurst(ctx context.Context) error {
	var slowest []float64
	for range pickSize(b.scenarioRun, 3, 1) {
		err := b.runAtBroker(ctx, b.receiverURLs(5), func(p *receivers.Producer) error {
			took, err := b.drainHub(ctx, p, 50, 5)
			slowest = append(slowest, float64(b.server.Latencies().Percentile(99))/float64(took))
			return err
		})
		if err != nil {
			return err
		}
	}
	b.reportFigure("hub", fmt.Sprintf("p99 in a burst of %d messages to 5, ratio to the whole burst", b.events), median(slowest, asIs), "times", figure.AtMost(1.3))
	return nil
}

// measureWithHanging measures a consumer alone, then beside a hanging consumer of the same channel,
// then beside a hanging consumer of another channel. The rounds alternate, so that other work of
// this machine slows all three cases equally.
func (b *brokerBench) measureWithHanging(ctx context.Context) error {
	names := [...]string{"alone", "beside a hanging consumer of its channel", "beside a hanging consumer of another channel"}
	var p99 [len(names)][]float64
	for range pickSize(b.scenarioRun, 5, 3) {
		for i := range names {
			err := b.runAtBroker(ctx, b.receiverURLs(1), func(p *receivers.Producer) error {
				hanging := &receivers.Producer{}
				*hanging = *p
				if i == 2 {
					hanging.Channel = "another"
				}
				if i > 0 {
					callbacks := []string{b.server.HangingURL()}
					if i == 1 {
						callbacks = append(b.receiverURLs(1), callbacks...)
					}
					if err := hanging.Create(ctx, callbacks...); err != nil {
						return err
					}
				}
				return b.broadcastSteadily(ctx, p, hanging, pickSize(b.scenarioRun, 12*time.Second, 6*time.Second))
			})
			if err != nil {
				return err
			}
			p99[i] = append(p99[i], inMS(b.server.Latencies().Percentile(99)))
		}
	}
	alone := median(p99[0], asIs)
	for i, name := range names {
		b.reportFigure("hub", fmt.Sprintf("at %d/s, p99 %s", brokerRate, name), median(p99[i], asIs), "ms", nil)
		if i > 0 {
			b.reportFigure("hub", "p99 "+name+", ratio to alone", median(p99[i], asIs)/alone, "times", figure.AtMost(1.25))
		}
	}
	return nil
}

// broadcastSteadily broadcasts brokerRate messages per second through p. If hanging sends to
// another channel, each message is also broadcast through hanging. The messages of the first two
// seconds are not counted.
func (b *brokerBench) broadcastSteadily(ctx context.Context, p, hanging *receivers.Producer, lasts time.Duration) error {
	const settle = 2 * time.Second
	arrivals := load.Poisson(brokerRate, rand.New(rand.NewPCG(b.Seed, 2)))
	var times []time.Duration
	counted := 0
	for at := arrivals(); at < lasts; at = arrivals() {
		times = append(times, at)
		if at >= settle {
			counted++
		}
	}
	all, began := b.server.Expect(counted), time.Now()
	g, gctx := errgroup.WithContext(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, at := range times {
		timer.Reset(time.Until(began.Add(at)))
		select {
		case <-timer.C:
		case <-gctx.Done():
			return g.Wait()
		}
		if hanging.Channel != p.Channel {
			g.Go(func() error { return hanging.SendUncounted(gctx, b.newMessage()) })
		}
		g.Go(func() error {
			if at < settle {
				return p.SendUncounted(gctx, b.newMessage())
			}
			return p.Send(gctx, b.server, began.Add(at), b.newMessage())
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return waitUntilClosed(ctx, all)
}

// measureMemory measures the growth of the heap while all messages are delivered.
func (b *brokerBench) measureMemory(ctx context.Context) error {
	return b.runAtBroker(ctx, b.receiverURLs(1), func(p *receivers.Producer) error {
		before := heapInUse()
		for range pickSize(b.scenarioRun, 9, 2) {
			if _, err := b.drainHub(ctx, p, 16, 1); err != nil {
				return err
			}
		}
		b.server.Expect(0)
		grown := float64(max(heapInUse(), before)-before) / (1 << 20)
		b.reportFigure("hub", fmt.Sprintf("heap growth after %d deliveries", pickSize(b.scenarioRun, 9, 2)*b.events), grown, "MB", figure.AtMost(heapLimit))
		return nil
	})
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// drainHub broadcasts all messages by several producers, each of which sends one message at a time,
// and returns when n consumers have received them.
func (b *brokerBench) drainHub(ctx context.Context, p *receivers.Producer, producers, n int) (time.Duration, error) {
	return b.drainBy(ctx, producers, n, func(ctx context.Context, due time.Time) error {
		return p.Send(ctx, b.server, due, b.newMessage())
	})
}

// drainRelay broadcasts all messages as drainHub does, but through a relay.
func (b *brokerBench) drainRelay(ctx context.Context, producers, n int) (took time.Duration, err error) {
	relay, err := receivers.StartRelay(ctx, b.receiverURLs(n), pushWorkers)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, relay.Close(ctx)) }()
	sender := b.newSender(relay.URL())
	return b.drainBy(ctx, producers, n, func(ctx context.Context, due time.Time) error {
		return sender.Send(ctx, b.server, due, b.newMessage())
	})
}

func (b *brokerBench) drainBy(ctx context.Context, producers, n int, send func(context.Context, time.Time) error) (time.Duration, error) {
	all := b.server.Expect(n * b.events)
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	var sent atomic.Int64
	for range producers {
		g.Go(func() error {
			for sent.Add(1) <= int64(b.events) {
				if err := send(gctx, time.Now()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	if err == nil {
		err = waitUntilClosed(ctx, all)
	}
	return time.Since(began), err
}

// runAtBroker starts a hub, and calls measure with a producer. The channel of the producer has a
// consumer for each URL in callbacks.
func (b *brokerBench) runAtBroker(ctx context.Context, callbacks []string, measure func(*receivers.Producer) error) error {
	return b.runAtHub(ctx, nil, b.withProducer(ctx, callbacks, measure))
}

// runAtBusyBroker is runAtBroker without a limit for the calls to one consumer: all workers of the
// hub may call the same consumer, as all workers of a relay may.
func (b *brokerBench) runAtBusyBroker(ctx context.Context, callbacks []string, measure func(*receivers.Producer) error) error {
	return b.runAtBusyHub(ctx, nil, b.withProducer(ctx, callbacks, measure))
}

// withProducer returns a function that takes the URL of a hub. The function creates a producer, its
// channel and its consumers at that hub, and calls measure with the producer.
func (b *brokerBench) withProducer(ctx context.Context, callbacks []string, measure func(*receivers.Producer) error) func(url string) error {
	return func(url string) error {
		p := &receivers.Producer{Client: b.client, URL: url, Token: service.AdminToken, Channel: "bench", Bytes: pushBytes}
		if err := p.Create(ctx, callbacks...); err != nil {
			return err
		}
		return measure(p)
	}
}

func (b *brokerBench) newMessage() string { return strconv.FormatInt(b.messages.Add(1), 10) }
