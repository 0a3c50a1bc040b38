package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/bench/service"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// The load of measureForgedTokens.
const (
	honestPause   = 5 * time.Millisecond // pause between two Peeks of the honest actor
	forgedRate    = 400                  // forged tokens per second in the steady rate
	forgers       = 8                    // clients that send each forged token as soon as the previous one is refused
	forgedSources = 4096                 // number of addresses of the forgers
)

// A forgedLoad is the size of the load of measureForgedTokens.
type forgedLoad struct {
	rounds int           // number of rounds of each comparison
	steady time.Duration // duration of a measurement with forged tokens at a steady rate
	flood  time.Duration // duration of a measurement during a flood
	tokens int           // number of forged tokens in a flood
}

// A forgedTokenBench is a hub with an honest actor, whose bundle is open, and with clients that send forged
// tokens.
type forgedTokenBench struct {
	*tokenBench
	load    forgedLoad
	url     string
	honest  string // Authorization header of the actor
	sent    atomic.Int64
	refused atomic.Int64                          // forged requests that the hub refused with 401
	counts  func() (units float64, fetches int64) // request units of the account, and fetches of the issuer's keys
}

// measureForgedTokens measures the Peeks of an honest actor alone and during requests with forged
// tokens, in alternating rounds. The hub trusts a proxy, which reports a different client address
// for each forged request: so the hub does not refuse a token because of earlier tokens from the
// same address, and verifies each. In the last comparison all requests have one address, and the
// hub refuses most of them without verifying them.
func (b *tokenBench) measureForgedTokens(ctx context.Context) error {
	return b.runInNewSite(ctx, func(p testSite) error {
		return b.measureForged(ctx, p, pickSize(b.scenarioRun, forgedLoad{5, 5 * time.Second, 2 * time.Second, 10_000}, forgedLoad{2, time.Second, time.Second, 2_000}))
	})
}

func (b *tokenBench) measureForged(ctx context.Context, p testSite, load forgedLoad) (err error) {
	if err := hub.Provision(ctx, p.Account, perContainer); err != nil {
		return err
	}
	line := p.Line()
	node, err := service.Start(ctx, service.Options{
		Account: p.Account, Database: hub.Name, Transport: line, Folder: p.folder, NoChecks: true,
		Configure: func(c *config.Config) {
			b.issuer.Trust(c)
			c.Limits.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Stop()) }()
	f := &forgedTokenBench{
		tokenBench: b, load: load, url: node.URL(),
		counts: func() (float64, int64) { return line.Count().Units, b.issuer.Fetches() },
	}
	for _, step := range []func(context.Context) error{f.openBundle, f.compareAtRate, f.measureFloodAlone, f.compareFloods} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openBundle sends an event to the honest actor, and peeks as that actor.
func (f *forgedTokenBench) openBundle(ctx context.Context) error {
	domain, err := f.issuer.Domain("TimeSeries")
	if err != nil {
		return err
	}
	token, err := f.issuer.Actor("honest", time.Now().Add(time.Hour))
	if err != nil {
		return err
	}
	f.honest = "Bearer " + token
	const event = `[{"id":"7a1c1b6e-0d39-4a55-8f0e-0d6f5f5f9a01","recipient":"honest","origin":"TimeSeries","contentType":"RSM-012","documentType":"E66","supportsBundling":true,"weight":1}]`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/data-available", strings.NewReader(event))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+domain)
	answer, err := f.client.Do(req)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusAccepted {
		return fmt.Errorf("an event was answered %d", answer.StatusCode)
	}
	if outcome := f.peek(ctx); outcome.Failed != "" {
		return fmt.Errorf("the Peek of the honest actor: %s", outcome.Failed)
	}
	return nil
}

func (f *forgedTokenBench) peek(ctx context.Context) load.Outcome {
	status, err := f.sendRequest(ctx, f.client, http.MethodGet, f.url+"/v1/peek", [2]string{"Authorization", f.honest})
	outcome := load.Outcome{Kind: "peek"}
	if err != nil {
		outcome.Failed = "no answer"
	} else if status != http.StatusOK {
		outcome.Failed = fmt.Sprint(status)
	}
	return outcome
}

// sendForged sends a forged token. If sameAddress is true, all calls report the same client
// address; otherwise each call reports a different one.
func (f *forgedTokenBench) sendForged(ctx context.Context, token string, sameAddress bool) {
	at := f.sent.Add(1) % forgedSources
	if sameAddress {
		at = 0
	}
	from := fmt.Sprintf("10.1.%d.%d", at/256, at%256)
	status, err := f.sendRequest(ctx, f.client, http.MethodGet, f.url+"/v1/peek", [2]string{"Authorization", "Bearer " + token}, [2]string{"X-Forwarded-For", from})
	if err == nil && status == http.StatusUnauthorized {
		f.refused.Add(1)
	}
}

// peekDuring peeks as the honest actor for a time, while other streams run.
func (f *forgedTokenBench) peekDuring(ctx context.Context, lasts time.Duration, others ...load.Stream) (took time.Duration, failed int, err error) {
	runtime.GC()
	result, err := load.Run(ctx, load.Plan{
		Lasts: lasts, Settle: lasts / 10,
		Streams: append(others, load.Stream{Arrivals: load.Every(honestPause, 0), Task: f.peek}),
	})
	if err != nil {
		return 0, 0, err
	}
	for _, n := range result.Failures() {
		failed += n
	}
	return result.LatenciesOf("peek").Percentile(99), failed, nil
}

// compareAtRate compares the honest actor alone with the same actor while forged tokens arrive at a
// steady rate.
func (f *forgedTokenBench) compareAtRate(ctx context.Context) error {
	_, fetches := f.counts()
	var alone, beside []time.Duration
	failed, rounds, lasts := 0, f.load.rounds, f.load.steady
	for round := range rounds {
		f.reportProgress(0.7+0.15*float64(round)/float64(rounds), "%d forged tokens a second", forgedRate)
		forged, err := f.issuer.Forged("honest", int(lasts.Seconds()*forgedRate))
		if err != nil {
			return err
		}
		p99, n, err := f.peekDuring(ctx, lasts)
		if err != nil {
			return err
		}
		alone, failed = append(alone, p99), failed+n
		var next atomic.Int64
		p99, n, err = f.peekDuring(ctx, lasts, load.Stream{
			Arrivals: load.Poisson(forgedRate, rand.New(rand.NewPCG(f.Seed, uint64(round)))),
			Task: func(ctx context.Context) load.Outcome {
				f.sendForged(ctx, forged[int(next.Add(1))%len(forged)], false)
				return load.Outcome{}
			},
		})
		if err != nil {
			return err
		}
		beside, failed = append(beside, p99), failed+n
	}
	_, after := f.counts()
	sent, refused := f.sent.Swap(0), f.refused.Swap(0)
	what := fmt.Sprintf("forged at %d/s", forgedRate)
	f.reportFigure("hub", what+", total", float64(sent), "requests", nil)
	f.reportFigure("hub", what+", not refused with 401", float64(sent-refused), "requests", figure.AtMost(0))
	f.reportFigure("hub", what+", fetches of keys", float64(after-fetches), "", figure.AtMost(2))
	f.reportHonest(what, alone, beside, failed, figure.AtMost(1.25))
	return nil
}

// reportHonest reports the figures of the honest actor.
func (f *forgedTokenBench) reportHonest(what string, alone, beside []time.Duration, failed int, target *figure.Target) {
	f.reportFigure("hub", what+", honest p99 alone", median(alone, inMS), "ms", nil)
	f.reportFigure("hub", what+", honest p99 beside", median(beside, inMS), "ms", nil)
	f.reportFigure("hub", what+", honest p99 beside, ratio to alone", median(beside, inMS)/median(alone, inMS), "times", target)
	f.reportFigure("hub", what+", failed honest peeks", float64(failed), "", figure.AtMost(0))
}

// measureFloodAlone sends only forged tokens, as fast as they are refused.
func (f *forgedTokenBench) measureFloodAlone(ctx context.Context) error {
	n := f.load.tokens
	forged, err := f.issuer.Forged("honest", n)
	if err != nil {
		return err
	}
	runtime.GC()
	units, fetches := f.counts()
	began := time.Now()
	f.sendAll(ctx, forged, false)
	took := time.Since(began)
	unitsAfter, fetchesAfter := f.counts()
	what := fmt.Sprintf("%d forged alone", n)
	f.reportFigure("hub", what+", refused", float64(n)/took.Seconds(), "1/s", nil)
	f.reportFigure("hub", what+", not refused with 401", float64(f.sent.Swap(0)-f.refused.Swap(0)), "requests", figure.AtMost(0))
	f.reportFigure("hub", what+", fetches of keys", float64(fetchesAfter-fetches), "", figure.AtMost(2))
	f.reportFigure("hub", what+", request units", unitsAfter-units, "RU", figure.AtMost(0))
	return ctx.Err()
}

// sendAll makes concurrent forgers send the tokens in forged, until all are sent or ctx ends.
func (f *forgedTokenBench) sendAll(ctx context.Context, forged []string, sameAddress bool) {
	var next atomic.Int64
	var sending sync.WaitGroup
	for range forgers {
		sending.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(forged)) && ctx.Err() == nil; at = next.Add(1) - 1 {
				f.sendForged(ctx, forged[at], sameAddress)
			}
		})
	}
	sending.Wait()
}

// compareFloods compares the honest actor alone with the same actor during a flood of forgers that
// send as fast as they are refused. Hub, forgers and actor share two cores.
func (f *forgedTokenBench) compareFloods(ctx context.Context) error {
	rounds, lasts := f.load.rounds, f.load.flood
	forged, err := f.issuer.Forged("honest", f.load.tokens)
	if err != nil {
		return err
	}
	for i, what := range []string{"flood of forged", "flood from one address"} {
		var alone, beside []time.Duration
		failed := 0
		for round := range rounds {
			f.reportProgress(0.85+0.07*(float64(i)+float64(round)/float64(rounds)), "%s", what)
			p99, n, err := f.peekDuring(ctx, lasts)
			if err != nil {
				return err
			}
			alone, failed = append(alone, p99), failed+n
			forging, end := context.WithCancel(ctx)
			var running sync.WaitGroup
			running.Go(func() {
				for forging.Err() == nil {
					f.sendAll(forging, forged, i == 1)
				}
			})
			p99, n, err = f.peekDuring(ctx, lasts)
			end()
			running.Wait()
			if err != nil {
				return err
			}
			beside, failed = append(beside, p99), failed+n
		}
		sent, refused := f.sent.Swap(0), f.refused.Swap(0)
		f.reportFigure("hub", what+", refused", float64(sent)/(float64(rounds)*lasts.Seconds()), "1/s", nil)
		f.reportFigure("hub", what+", verified share", 100*float64(refused)/float64(sent), "%", nil)
		f.reportHonest(what, alone, beside, failed, nil)
	}
	return nil
}
