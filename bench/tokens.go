package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/market"
	"github.com/messagehub/messagehub/bench/service"
	"github.com/messagehub/messagehub/bench/tokens"
)

// A tokenBench compares a hub that requires tokens with one that trusts the header X-Actor-Id. It
// also measures the effect of forged tokens, of an unreachable issuer and of a full listener. The
// hub, the issuer and the clients share this machine.
type tokenBench struct {
	*scenarioRun
	issuer *tokens.Issuer
	client *http.Client
}

// A side is one of the two compared hubs: with tokens or without.
type side struct {
	name      string
	hasTokens bool
}

var sides = [2]side{{"without tokens", false}, {"with tokens", true}}

// compareTokens runs the measurements of the scenario tokens.
func compareTokens(ctx context.Context, r *scenarioRun) (err error) {
	issuer, err := tokens.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, issuer.Stop()) }()
	b := &tokenBench{scenarioRun: r, issuer: issuer, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	defer b.client.CloseIdleConnections()
	for _, step := range []func(context.Context) error{
		b.compareActors, b.compareWorstPeeks, b.measureForgedTokens, b.measureIssuerAway, b.measureFullListener, b.measureRememberedToken,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// serviceOf returns the options of the hub of side s.
func (b *tokenBench) serviceOf(s side) (o service.Options) {
	if s.hasTokens {
		o.Configure = b.issuer.Trust
	}
	return o
}

// runInFolder calls measure with a new folder, and removes it afterwards.
func (b *tokenBench) runInFolder(measure func(folder string) error) (err error) {
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return measure(folder)
}

// orderOf returns the order in which a round measures the sides. Each side is first in every second
// round.
func orderOf(round int) [2]int {
	if round%2 == 0 {
		return [2]int{0, 1}
	}
	return [2]int{1, 0}
}

// compareActors runs a market with and without tokens, in alternating rounds. It is the market of
// the scenario many-actors, but shorter, with smaller batches and shorter periods, so that enough
// operations can be compared.
func (b *tokenBench) compareActors(ctx context.Context) error {
	return b.compareMarkets(ctx, market.Market{
		Groups: []market.Group{{Size: pickSize(b.scenarioRun, 600, 200), Events: pickSize(b.scenarioRun, 2000.0, 1000.0), Batch: 10, Period: pickSize(b.scenarioRun, 4*time.Second, 2*time.Second)}},
		Lasts:  pickSize(b.scenarioRun, 12*time.Second, 4*time.Second), Settle: pickSize(b.scenarioRun, 2*time.Second, time.Second),
		Throughput: market.Throughput{Catalog: 40_000, Cabinet: 30_000, Bundles: 30_000},
	}, pickSize(b.scenarioRun, 5, 1))
}

// A marketSide holds the results of the markets of one side.
type marketSide struct {
	rates    []float64                  // events per second; one per market
	p50, p99 map[string][]time.Duration // percentiles by kind of operation; one value per market
	failed   int                        // number of failed operations
	stock    market.Stock
}

// marketKinds are the compared operations.
var marketKinds = []string{"peek", "dequeue"}

func (s *marketSide) addDay(d *market.Day) error {
	for _, kind := range marketKinds {
		took, err := latencyP99(d, kind)
		if err != nil {
			return err
		}
		s.p99[kind] = append(s.p99[kind], took)
		s.p50[kind] = append(s.p50[kind], d.LatenciesOf(kind).Percentile(50))
	}
	s.rates = append(s.rates, float64(d.Groups[0].Events)/d.Took.Seconds())
	s.failed += failedOperations(d)
	s.stock.Add(d.Groups[0].Stock)
	return nil
}

func (b *tokenBench) compareMarkets(ctx context.Context, m market.Market, rounds int) error {
	var found [len(sides)]marketSide
	for i := range found {
		found[i].p50, found[i].p99 = make(map[string][]time.Duration), make(map[string][]time.Duration)
	}
	held, all := 0.0, float64(rounds*len(sides))
	for round := range rounds {
		for _, i := range orderOf(round) {
			m.Issuer = nil
			if sides[i].hasTokens {
				m.Issuer = b.issuer
			}
			d, err := b.runMarket(ctx, m, "actors come and go "+sides[i].name, 0.6*held/all, 0.6*(held+1)/all)
			if err == nil {
				err = found[i].addDay(d)
			}
			if err != nil {
				return err
			}
			held++
		}
	}
	without, with := &found[0], &found[1]
	b.reportRatio("many actors, events per second", "1/s", median(without.rates, asIs), median(with.rates, asIs), figure.AtLeast(1/1.05))
	for _, kind := range marketKinds {
		b.reportRatio("many actors, "+kind+" p50", "ms", median(without.p50[kind], inMS), median(with.p50[kind], inMS), figure.AtMost(1.05))
		b.reportRatio("many actors, "+kind+" p99", "ms", median(without.p99[kind], inMS), median(with.p99[kind], inMS), figure.AtMost(1.05))
	}
	b.reportFigure("hub", "many actors, failed operations", float64(without.failed+with.failed), "", figure.AtMost(0))
	without.stock.Add(with.stock)
	b.reportDeliveries("many actors, ", without.stock)
	return nil
}

// reportRatio reports a figure without tokens, the figure with tokens, and the ratio of the figure
// with tokens to the figure without.
func (b *tokenBench) reportRatio(metric, unit string, without, with float64, target *figure.Target) {
	b.reportFigure("hub", metric+", without tokens", without, unit, nil)
	b.reportFigure("hub", metric+", with tokens", with, unit, nil)
	b.reportFigure("hub", metric+", with tokens, ratio to without", with/without, "times", target)
}

// compareWorstPeeks opens and confirms bundles of 51,200 events over HTTP, through two hubs of one
// account, in alternating rounds.
func (b *tokenBench) compareWorstPeeks(ctx context.Context) error {
	return b.runInNewSite(ctx, func(p testSite) error {
		return b.comparePeeks(ctx, p, int(worstEvents), pickSize(b.scenarioRun, 15, 1))
	})
}

func (b *tokenBench) comparePeeks(ctx context.Context, p testSite, events, rounds int) (err error) {
	if err := hub.Provision(ctx, p.Account, perContainer); err != nil {
		return err
	}
	src := eventSource{seed: b.Seed}
	actors := src.newActors(rounds * len(sides))
	for i, actor := range actors {
		b.reportProgress(0.6+0.05*float64(i)/float64(len(actors)), "fill mailboxes with %d events", events)
		if err := fillStore(ctx, hub, p.Account, actor, src.newEvents(events, actor, 1)); err != nil {
			return err
		}
	}
	var urls [len(sides)]string
	for i, side := range sides {
		o := b.serviceOf(side)
		o.Account, o.Database, o.Transport, o.Folder = p.Account, hub.Name, p.Line(), filepath.Join(p.folder, side.name)
		node, err := service.Start(ctx, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.Stop()) }()
		urls[i] = node.URL()
	}
	var peeks, dequeues [len(sides)][]time.Duration
	for round := range rounds {
		b.reportProgress(0.65+0.03*float64(round)/float64(rounds), "open bundles of %d events", events)
		for _, i := range orderOf(round) {
			credentials, err := b.credentialsOf(sides[i], actors[round*len(sides)+i].String())
			if err != nil {
				return err
			}
			runtime.GC()
			peeked, dequeued, err := b.fetchBundle(ctx, urls[i], credentials)
			if err != nil {
				return err
			}
			peeks[i], dequeues[i] = append(peeks[i], peeked), append(dequeues[i], dequeued)
		}
	}
	b.reportRatio("worst peek", "ms", median(peeks[0], inMS), median(peeks[1], inMS), figure.AtMost(1.05))
	b.reportRatio("worst dequeue", "ms", median(dequeues[0], inMS), median(dequeues[1], inMS), nil)
	return nil
}

// credentialsOf returns the name and the value of the header that identifies an actor on a
// side.
func (b *tokenBench) credentialsOf(s side, actor string) (header [2]string, err error) {
	if !s.hasTokens {
		return [2]string{"X-Actor-Id", actor}, nil
	}
	token, err := b.issuer.Actor(actor, time.Now().Add(time.Hour))
	return [2]string{"Authorization", "Bearer " + token}, err
}

// fetchBundle opens a bundle and confirms it.
func (b *tokenBench) fetchBundle(ctx context.Context, url string, credentials [2]string) (peeked, dequeued time.Duration, err error) {
	began := time.Now()
	answer, err := b.openRequest(ctx, b.client, http.MethodGet, url+"/v1/peek", credentials)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	peeked = time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	if answer.StatusCode != http.StatusOK || n == 0 {
		return 0, 0, fmt.Errorf("a Peek was answered %d with %d bytes", answer.StatusCode, n)
	}
	began = time.Now()
	status, err := b.sendRequest(ctx, b.client, http.MethodDelete, url+"/v1/dequeue/"+answer.Header.Get("Messageid"), credentials)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("a Dequeue was answered %d", status)
	}
	return peeked, time.Since(began), err
}

// sendRequest sends a request, reads the response to its end, and returns the status.
func (b *tokenBench) sendRequest(ctx context.Context, client *http.Client, method, url string, headers ...[2]string) (status int, err error) {
	answer, err := b.openRequest(ctx, client, method, url, headers...)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// openRequest sends a request with headers, each a name and a value.
func (b *tokenBench) openRequest(ctx context.Context, client *http.Client, method, url string, headers ...[2]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	for _, h := range headers {
		req.Header.Set(h[0], h[1])
	}
	return client.Do(req)
}
