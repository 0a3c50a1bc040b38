package bench

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/objectclient"
	"github.com/messagehub/messagehub/bench/service"
)

// The numbers of concurrent callers that report objects.
const (
	objectSenders = 16 // callers that send messages with several events
	objectCallers = 32 // callers that send messages with one event
)

// An objectBench reports objects to hubs. The hub, its embedded engine with fsync and the callers
// share this machine.
type objectBench struct{ *pushBench }

// measureObjectLedger measures the ledger: the throughput of reports, the request units of a report
// and of a crawl, and the times of lists.
func measureObjectLedger(ctx context.Context, r *scenarioRun) error {
	b := &objectBench{&pushBench{scenarioRun: r, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}}
	defer b.client.CloseIdleConnections()
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"report objects", b.measureThroughput},
		{"report objects to two nodes", b.compareNodes},
		{"price events", b.measurePrices},
		{"price a crawl", b.measureCrawls},
		{"list objects", b.comparePages},
	}
	for i, step := range steps {
		r.reportProgress(float64(i)/float64(len(steps)), "%s", step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// measureThroughput measures how many events per second a hub stores: events of new objects, mixed
// events, and events of one object. A third of the mixed events are of new objects, a third of
// known objects, and a third are duplicates.
func (b *objectBench) measureThroughput(ctx context.Context) error {
	return b.runAtHub(ctx, nil, func(url string) error {
		s, rounds := newObjectSource(b.Seed), pickSize(b.scenarioRun, 3, 2)
		if err := b.reportNewObjects(ctx, url, s, pickSize(b.scenarioRun, 10_000, 2_000)); err != nil {
			return err
		}
		hot := 0
		sameObject := func() objectclient.Event { return s.changedObject(hot) }
		for _, load := range []struct {
			name            string
			events          int // per round
			atLeast, atMost int // events per message
			callers         int
			next            func() objectclient.Event
			target          float64
		}{
			{"new objects, messages of 10 to 100 events", pickSize(b.scenarioRun, 30_000, 4_000), minObjectMessage, maxObjectMessage, objectSenders, s.createdEvent, 4_000},
			{"mixed, messages of 10 to 100 events", pickSize(b.scenarioRun, 30_000, 4_000), minObjectMessage, maxObjectMessage, objectSenders, s.mixedEvent, 3_000},
			{"mixed, one event a request from 32 callers", pickSize(b.scenarioRun, 15_000, 2_000), 1, 1, objectCallers, s.mixedEvent, 1_500},
			{"one object, one event a request from a caller", pickSize(b.scenarioRun, 4_000, 500), 1, 1, 1, sameObject, 400},
			{"one object, messages of 10 to 100 from a caller", pickSize(b.scenarioRun, 12_000, 1_500), minObjectMessage, maxObjectMessage, 1, sameObject, 1_200},
		} {
			var rates []float64
			for range rounds {
				hot = s.rng.IntN(len(s.known))
				l := s.newLoad(load.events, load.atLeast, load.atMost, load.next)
				took, err := b.sendLoad(ctx, l, load.callers, url)
				if err != nil {
					return fmt.Errorf("%s: %w", load.name, err)
				}
				rates = append(rates, float64(l.events)/took.Seconds())
			}
			b.reportFigure("hub", load.name, median(rates, asIs), "1/s", figure.AtLeast(load.target))
		}
		return nil
	})
}

// reportNewObjects reports n new objects.
func (b *objectBench) reportNewObjects(ctx context.Context, url string, s *objectSource, n int) error {
	_, err := b.sendLoad(ctx, s.newLoad(n, maxObjectMessage, maxObjectMessage, s.createdEvent), objectSenders, url)
	return err
}

// sendLoad sends the messages of a load to hubs in rotation, with a number of concurrent callers,
// and returns the time that it took. It fails unless each new event was stored and each duplicate
// was counted as a duplicate.
func (b *objectBench) sendLoad(ctx context.Context, l objectLoad, callers int, urls ...string) (time.Duration, error) {
	var next, accepted, duplicates atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range callers {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(l.messages) {
					return nil
				}
				counts, err := b.objectClient(urls[i%len(urls)]).Send(gctx, l.messages[i])
				if err != nil {
					return err
				}
				accepted.Add(int64(counts.Accepted))
				duplicates.Add(int64(counts.Duplicates))
			}
		})
	}
	err := g.Wait()
	took := time.Since(began)
	if a, d := accepted.Load(), duplicates.Load(); err == nil && (a != int64(l.stored) || d != int64(l.events-l.stored)) {
		err = fmt.Errorf("of %d events, %d of which are duplicates, the hub has stored %d and counted %d as duplicates", l.events, l.events-l.stored, a, d)
	}
	return took, err
}

func (b *objectBench) objectClient(url string) *objectclient.Client {
	return &objectclient.Client{HTTP: b.client, URL: url, Token: service.AdminToken}
}
