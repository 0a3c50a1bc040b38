package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/receivers"
	"github.com/messagehub/messagehub/bench/service"
)

// The load of the scenario push.
const (
	pushBytes   = 256 // size of an event's data
	pushBatch   = 100
	pushSenders = 4 // concurrent senders of batches
	pushWorkers = 64
	pushRate    = 300 // events per second, published one by one
)

// measurePush publishes events to a node and times the calls of receivers. The hub, its embedded
// engine with fsync, senders and receivers share this machine. Every measurement starts a new
// node.
func measurePush(ctx context.Context, r *scenarioRun) (err error) {
	s, err := receivers.Serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p := &pushBench{scenarioRun: r, server: s, events: pickSize(r, 10_000, 2_000), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	defer p.client.CloseIdleConnections()
	for i, step := range []func(context.Context) error{p.measureThroughput, p.measureWithHanging, p.measureOpenLoop} {
		r.reportProgress(float64(i)/3, "publish %d events of %d bytes", p.events, pushBytes)
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type pushBench struct {
	*scenarioRun
	server *receivers.Server
	client *http.Client
	events int
	ids    atomic.Int64
}

// measureThroughput compares a hub with a relay, in alternating rounds, for one receiver and for
// five. Hub and relay have the same limit for concurrent calls to one receiver.
func (p *pushBench) measureThroughput(ctx context.Context) error {
	for _, n := range []int{1, 5} {
		var hub, relay, slowest []float64
		for range pickSize(p.scenarioRun, 5, 3) {
			took, err := p.drainByRelay(ctx, n)
			if err != nil {
				return fmt.Errorf("relay to %d receivers: %w", n, err)
			}
			relay = append(relay, p.perSecond(n, took))
			err = p.runAtBusyHub(ctx, p.receiverURLs(n), func(url string) error {
				took, err = p.drainBacklog(ctx, url, n)
				return err
			})
			if err != nil {
				return fmt.Errorf("hub to %d receivers: %w", n, err)
			}
			hub = append(hub, p.perSecond(n, took))
			slowest = append(slowest, float64(p.server.Latencies().Percentile(99))/float64(took))
		}
		target := map[int]float64{1: 2000, 5: 3000}[n]
		p.reportFigure("hub", fmt.Sprintf("deliveries to %d", n), median(hub, asIs), "1/s", figure.AtLeast(target))
		p.reportFigure("relay", fmt.Sprintf("deliveries to %d", n), median(relay, asIs), "1/s", nil)
		p.reportFigure("hub", fmt.Sprintf("deliveries to %d, ratio to the relay", n), median(hub, asIs)/median(relay, asIs), "times", figure.AtLeast(0.4))
		p.reportFigure("hub", fmt.Sprintf("p99 of a backlog to %d, ratio to the whole backlog", n), median(slowest, asIs), "times", figure.AtMost(1.3))
	}
	return nil
}

// measureWithHanging measures one receiver alone, and beside a receiver that does not respond, in
// alternating rounds, so that other work of this machine slows both cases equally.
func (p *pushBench) measureWithHanging(ctx context.Context) error {
	var alone, beside []float64
	for range pickSize(p.scenarioRun, 5, 3) {
		for _, hangs := range []bool{false, true} {
			urls := p.receiverURLs(1)
			if hangs {
				urls = append(urls, p.server.HangingURL())
			}
			result, err := p.publishSteadily(ctx, urls, pickSize(p.scenarioRun, 12*time.Second, 6*time.Second))
			if err != nil {
				return err
			}
			p99 := inMS(result.Percentile(99))
			if hangs {
				beside = append(beside, p99)
			} else {
				alone = append(alone, p99)
			}
		}
	}
	p.reportFigure("hub", "p99 alone", median(alone, asIs), "ms", nil)
	p.reportFigure("hub", "p99 beside a hanging receiver", median(beside, asIs), "ms", nil)
	p.reportFigure("hub", "p99 beside a hanging receiver", median(beside, asIs)/median(alone, asIs), "times", figure.AtMost(1.25))
	return nil
}

// measureOpenLoop measures the latencies of events that are published one by one, counted from
// their due times.
func (p *pushBench) measureOpenLoop(ctx context.Context) error {
	found, err := p.publishSteadily(ctx, p.receiverURLs(1), pickSize(p.scenarioRun, 30*time.Second, 8*time.Second))
	if err != nil {
		return err
	}
	percentiles := found.Percentiles()
	p.reportFigure("hub", fmt.Sprintf("at %d/s, p50", pushRate), inMS(percentiles.P50), "ms", figure.AtMost(10))
	p.reportFigure("hub", fmt.Sprintf("at %d/s, p99", pushRate), inMS(percentiles.P99), "ms", figure.AtMost(50))
	p.reportFigure("hub", fmt.Sprintf("at %d/s, max", pushRate), inMS(percentiles.Max), "ms", nil)
	return nil
}

// publishSteadily publishes pushRate events per second to a new hub that calls urls. It returns the
// times from the due time of an event to the call of the first receiver.
func (p *pushBench) publishSteadily(ctx context.Context, urls []string, lasts time.Duration) (found *load.Latencies, err error) {
	const settle = 2 * time.Second
	err = p.runAtHub(ctx, urls, func(url string) error {
		sender := p.newSender(url)
		arrivals := load.Poisson(pushRate, rand.New(rand.NewPCG(p.Seed, 1)))
		began := time.Now()
		var due time.Duration
		var times []time.Duration // due times of events that are not published yet, in order
		for due < lasts {
			due = arrivals()
			times = append(times, due)
		}
		counted := times[slices.IndexFunc(times, func(at time.Duration) bool { return at >= settle }):]
		all := p.server.Expect(len(counted))
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
			g.Go(func() error {
				if at < settle {
					return sender.SendUncounted(gctx, p.newIDs(1)...)
				}
				return sender.Send(gctx, p.server, began.Add(at), p.newIDs(1)...)
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		return waitUntilClosed(ctx, all)
	})
	return p.server.Latencies(), err
}

// drainBacklog publishes all events in batches, and returns when n receivers have received
// them.
func (p *pushBench) drainBacklog(ctx context.Context, url string, n int) (time.Duration, error) {
	sender := p.newSender(url)
	all := p.server.Expect(n * p.events)
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(pushSenders)
	for range p.events / pushBatch {
		ids := p.newIDs(pushBatch)
		g.Go(func() error { return sender.Send(gctx, p.server, began, ids...) })
	}
	err := g.Wait()
	if err == nil {
		err = waitUntilClosed(ctx, all)
	}
	return time.Since(began), err
}

// runAtHub calls measure with the URL of a new hub that calls urls.
func (p *pushBench) runAtHub(ctx context.Context, urls []string, measure func(url string) error) error {
	return p.runAtHubWith(ctx, service.Options{}, urls, measure)
}

// runAtBusyHub is runAtHub without a limit for the calls to one receiver: all workers of the hub
// may call the same receiver, as all workers of a relay may.
func (p *pushBench) runAtBusyHub(ctx context.Context, urls []string, measure func(url string) error) error {
	return p.runAtHubWith(ctx, service.Options{Concurrency: pushWorkers}, urls, measure)
}

func (p *pushBench) runAtHubWith(ctx context.Context, o service.Options, urls []string, measure func(url string) error) (err error) {
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	o.Folder, o.Receivers = folder, true
	hub, err := service.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	for _, url := range urls {
		if err := p.newSender(hub.URL()).Subscribe(ctx, url); err != nil {
			return err
		}
	}
	return measure(hub.URL())
}

// drainByRelay delivers all events to n receivers by a relay.
func (p *pushBench) drainByRelay(ctx context.Context, n int) (took time.Duration, err error) {
	relay, err := receivers.StartRelay(ctx, p.receiverURLs(n), pushWorkers)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, relay.Close(ctx)) }()
	return p.drainBacklog(ctx, relay.URL(), n)
}

func (p *pushBench) newSender(url string) *receivers.Sender {
	return &receivers.Sender{Client: p.client, URL: url, Bytes: pushBytes}
}

func (p *pushBench) receiverURLs(n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = p.server.URL(i)
	}
	return urls
}

func (p *pushBench) newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.FormatInt(p.ids.Add(1), 10)
	}
	return ids
}

// reportFigure reports a figure. The figure is not marked as modelled, because the node runs its
// own engine.
func (p *pushBench) reportFigure(layout, metric string, value float64, unit string, target *figure.Target) {
	p.tell(figure.Figure{Scenario: p.scenario, Layout: layout, Metric: metric, Value: value, Unit: unit, Target: target, OK: target.Met(value)})
}

func (p *pushBench) perSecond(n int, took time.Duration) float64 {
	return float64(n*p.events) / took.Seconds()
}

// waitUntilClosed returns nil when all channels are closed, or the error of ctx.
func waitUntilClosed(ctx context.Context, all <-chan struct{}) error {
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func asIs(v float64) float64 { return v }
