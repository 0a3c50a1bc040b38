package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/receivers"
	"github.com/messagehub/messagehub/bench/service"
)

// watchedRate is the number of watched bundles that are confirmed per second.
const watchedRate = 100

// A watchBench changes watched resources and times the calls of their watches.
type watchBench struct {
	*pushBench
	watches int // number of watches of the document
}

// measureWatches changes a document with many watches, and confirms watched bundles. The hub, its
// embedded engine with fsync, clients and receivers share this machine.
func measureWatches(ctx context.Context, r *scenarioRun) (err error) {
	s, err := receivers.Serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w := &watchBench{
		pushBench: &pushBench{scenarioRun: r, server: s, client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 256},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}},
		watches: pickSize(r, 100_000, 3_000),
	}
	defer w.client.CloseIdleConnections()
	steps := []func(context.Context) error{w.measureFanOut, w.compareDuringChange, w.measureLatency, w.measurePrice}
	for i, step := range steps {
		r.reportProgress(float64(i)/float64(len(steps)), "change documents that up to %d watch", w.watches)
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measureFanOut compares a hub with a loop of the same calls, in alternating rounds, and measures
// the heap during the rounds.
func (w *watchBench) measureFanOut(ctx context.Context) error {
	return w.runAtHub(ctx, nil, func(url string) error {
		actor := &receivers.Watcher{Client: w.client, URL: url, Actor: "watcher"}
		uri, err := w.watchDocument(ctx, actor, w.watches)
		if err != nil {
			return err
		}
		var hub, loop, grown []float64
		for i := range pickSize(w.scenarioRun, 3, 2) {
			w.server.Expect(0)
			idle := heapInUse()
			heap := startHeapPeak(ctx)
			took, err := w.changeDocument(ctx, actor, uri, strconv.Itoa(i))
			grown = append(grown, float64(max(heap.stopSampling(), idle)-idle)/(1<<20))
			if err != nil {
				return err
			}
			hub = append(hub, float64(w.watches)/took.Seconds())
			all, began := w.server.Expect(w.watches), time.Now()
			w.server.Due(uri, began)
			if err := receivers.CallWatches(ctx, w.server, uri, w.watches, pushWorkers); err != nil {
				return err
			}
			if err := waitUntilClosed(ctx, all); err != nil {
				return err
			}
			loop = append(loop, float64(w.watches)/time.Since(began).Seconds())
		}
		name := fmt.Sprintf("a change to %d watches", w.watches)
		w.reportFigure("hub", name, median(hub, asIs), "1/s", figure.AtLeast(2000))
		w.reportFigure("loop", name, median(loop, asIs), "1/s", nil)
		w.reportFigure("hub", name+", ratio to the loop", median(hub, asIs)/median(loop, asIs), "times", figure.AtLeast(0.4))
		w.reportFigure("hub", name+", growth of the live heap", median(grown, asIs), "MB", figure.AtMost(32))
		return nil
	})
}

// watchDocument stores a document, and creates a watch of the document for each of n receivers.
func (w *watchBench) watchDocument(ctx context.Context, actor *receivers.Watcher, n int) (uri string, err error) {
	if uri, err = actor.Put(ctx, "watched", "new"); err != nil {
		return "", err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range n {
		g.Go(func() error { return actor.Watch(gctx, uri, w.server.WatchURL(i)) })
	}
	return uri, g.Wait()
}

// changeDocument changes a document and returns the time until the receivers of all watches were
// called.
func (w *watchBench) changeDocument(ctx context.Context, actor *receivers.Watcher, uri, text string) (time.Duration, error) {
	all, began := w.server.Expect(w.watches), time.Now()
	w.server.Due(uri, began)
	if _, err := actor.Put(ctx, "watched", text); err != nil {
		return 0, err
	}
	err := waitUntilClosed(ctx, all)
	return time.Since(began), err
}

// measureLatency measures the time from the Dequeue of a bundle to the call of
// its watch.
func (w *watchBench) measureLatency(ctx context.Context) error {
	return w.runAtHub(ctx, nil, func(url string) error {
		bundles, err := w.openBundles(ctx, url, pickSize(w.scenarioRun, 30*time.Second, 8*time.Second))
		if err != nil {
			return err
		}
		if err := w.confirmBundles(ctx, bundles); err != nil {
			return err
		}
		found := w.server.Latencies().Percentiles()
		w.reportFigure("hub", fmt.Sprintf("Dequeue at %d/s to the call of its watch, p50", watchedRate), inMS(found.P50), "ms", figure.AtMost(10))
		w.reportFigure("hub", fmt.Sprintf("Dequeue at %d/s to the call of its watch, p99", watchedRate), inMS(found.P99), "ms", figure.AtMost(50))
		return nil
	})
}

// compareDuringChange measures the calls for watches of confirmed bundles at one hub. In every
// second round, the hub also delivers the change of a document to many watches.
func (w *watchBench) compareDuringChange(ctx context.Context) (err error) {
	crowd := &watchBench{pushBench: &pushBench{scenarioRun: w.scenarioRun, client: w.client}, watches: w.watches}
	if crowd.server, err = receivers.Serve(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crowd.server.Close()) }()
	return w.runAtHub(ctx, nil, func(url string) error {
		actor := &receivers.Watcher{Client: w.client, URL: url, Actor: "watcher"}
		uri, err := crowd.watchDocument(ctx, actor, crowd.watches)
		if err != nil {
			return err
		}
		var p99 [2][]float64 // p99 alone, and p99 during the change of a document
		for i := range pickSize(w.scenarioRun, 6, 4) {
			bundles, err := w.openBundles(ctx, url, pickSize(w.scenarioRun, 10*time.Second, 3*time.Second))
			if err != nil {
				return err
			}
			g, gctx := errgroup.WithContext(ctx)
			if i%2 == 1 {
				g.Go(func() error {
					_, err := crowd.changeDocument(gctx, actor, uri, strconv.Itoa(i))
					return err
				})
			}
			g.Go(func() error { return w.confirmBundles(gctx, bundles) })
			if err := g.Wait(); err != nil {
				return err
			}
			p99[i%2] = append(p99[i%2], inMS(w.server.Latencies().Percentile(99)))
		}
		w.reportFigure("hub", fmt.Sprintf("p99 beside a change to %d watches, ratio to alone", w.watches), median(p99[1], asIs)/median(p99[0], asIs), "times", figure.AtMost(1.25))
		return nil
	})
}

// A watchedBundle is an open bundle with a watch. due is the time of its Dequeue, counted from the
// first Dequeue.
type watchedBundle struct {
	actor *receivers.Watcher
	id    string
	uri   string
	due   time.Duration
}

// openBundles opens the bundles that will be confirmed in the given time, each of a different
// actor.
func (w *watchBench) openBundles(ctx context.Context, url string, lasts time.Duration) ([]watchedBundle, error) {
	arrivals := load.Poisson(watchedRate, rand.New(rand.NewPCG(w.Seed, 3)))
	var bundles []watchedBundle
	for at := arrivals(); at < lasts; at = arrivals() {
		bundles = append(bundles, watchedBundle{due: at})
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	for i := range bundles {
		g.Go(func() (err error) {
			b := &bundles[i]
			b.actor, b.id = &receivers.Watcher{Client: w.client, URL: url, Actor: uuid.NewString()}, uuid.NewString()
			if b.uri, err = b.actor.OpenBundle(gctx, uuid.NewString(), b.id); err != nil {
				return err
			}
			return b.actor.Watch(gctx, b.uri, w.server.WatchURL(i))
		})
	}
	return bundles, g.Wait()
}

// confirmBundles confirms bundles when they are due, and returns when the receivers of all their
// watches were called. Times are counted from the due time of a request.
func (w *watchBench) confirmBundles(ctx context.Context, bundles []watchedBundle) error {
	all, began := w.server.Expect(len(bundles)), time.Now()
	g, gctx := errgroup.WithContext(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, b := range bundles {
		timer.Reset(time.Until(began.Add(b.due)))
		select {
		case <-timer.C:
		case <-gctx.Done():
			return g.Wait()
		}
		w.server.Due(b.uri, began.Add(b.due))
		g.Go(func() error { return b.actor.Dequeue(gctx, b.id) })
	}
	return errors.Join(g.Wait(), waitUntilClosed(ctx, all))
}

// measurePrice measures the request units of a notification, for a document with one watch and for
// one with many.
func (w *watchBench) measurePrice(ctx context.Context) error {
	for _, variant := range []struct {
		watches, changes int
		limit            float64
	}{{1, 50, 45}, {1500, 3, 15}} {
		price, err := w.measureNotificationPrice(ctx, variant.watches, variant.changes)
		if err != nil {
			return err
		}
		w.reportFigure("hub", fmt.Sprintf("a notification of %d watches, without the change", variant.watches), price, "RU", figure.AtMost(variant.limit))
	}
	return nil
}

// measureNotificationPrice changes a document with n watches several times. It returns the request
// units of a notification, without the request units of the changes. The settlements of the last
// change may be stored after the measurement has ended. To balance this, an additional change
// precedes the measurement, and its settlements are counted.
func (w *watchBench) measureNotificationPrice(ctx context.Context, n, changes int) (price float64, err error) {
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	a, err := account.Open(ctx, account.Options{Dir: filepath.Join(folder, "account"), Consistency: "Strong"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	line := a.Line()
	hub, err := service.Start(ctx, service.Options{Account: a, Database: "hub", Transport: line, Folder: folder, Receivers: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	few := &watchBench{pushBench: w.pushBench, watches: n}
	actor := &receivers.Watcher{Client: w.client, URL: hub.URL(), Actor: "watcher"}
	for _, text := range []string{"new", "changed"} {
		before := line.Count()
		if _, err := actor.Put(ctx, "alone", text); err != nil {
			return 0, err
		}
		price = -line.Count().Since(before).Units // request units of the change, which are not counted as part of a notification
	}
	uri, err := few.watchDocument(ctx, actor, n)
	if err != nil {
		return 0, err
	}
	var before account.Count
	for i := range changes + 1 {
		if _, err := few.changeDocument(ctx, actor, uri, strconv.Itoa(i)); err != nil {
			return 0, err
		}
		if i == 0 {
			before = line.Count()
		}
	}
	price += line.Count().Since(before).Units / float64(changes)
	return price / float64(n), nil
}

// A heapPeak is the maximum live heap of this process.
type heapPeak struct {
	cancel context.CancelFunc
	peak   chan uint64
}

// startHeapPeak starts to sample the heap until stopSampling is called.
func startHeapPeak(ctx context.Context) *heapPeak {
	ctx, cancel := context.WithCancel(ctx)
	h := &heapPeak{cancel, make(chan uint64, 1)}
	go func() {
		var peak uint64
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		look := time.NewTicker(50 * time.Millisecond)
		defer look.Stop()
		for {
			metrics.Read(sample)
			peak = max(peak, sample[0].Value.Uint64())
			select {
			case <-look.C:
			case <-ctx.Done():
				h.peak <- peak
				return
			}
		}
	}()
	return h
}

// stopSampling returns the largest live heap that the collector found.
func (h *heapPeak) stopSampling() uint64 {
	h.cancel()
	return <-h.peak
}
