package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/ledger"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A rollingLoad is the load during rolling upgrades: senders and actors, with
// the statuses and durations of their requests.
type rollingLoad struct {
	roll    *rollingRun
	ledger  energymarket.Ledger
	verdict *ledger.Verdict
	stop    chan struct{} // closed to stop the senders
	quiet   chan struct{} // closed after the senders have stopped; the actors then drain and stop

	mu       sync.Mutex
	phase    string
	answers  map[answerKey]int
	failures []string // descriptions of the first unexpected failures
	times    map[string][]time.Duration
	events   int
}

type answerKey struct{ phase, answer string }

func newRollingLoad(r *rollingRun) *rollingLoad {
	return &rollingLoad{
		roll: r, ledger: energymarket.NewLedger(), stop: make(chan struct{}), quiet: make(chan struct{}),
		answers: make(map[answerKey]int), times: make(map[string][]time.Duration),
	}
}

func (l *rollingLoad) setPhase(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = name
}

func (l *rollingLoad) endSending() { close(l.stop) }

func (l *rollingLoad) sentEvents() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events
}

// begin starts the senders and actors.
func (l *rollingLoad) begin(ctx context.Context, group *errgroup.Group) {
	var senders errgroup.Group
	for i := range l.roll.senders {
		senders.Go(func() error { return l.send(ctx, i) })
	}
	for _, actor := range l.roll.names {
		group.Go(func() error { return l.act(ctx, actor) })
	}
	group.Go(func() error {
		defer close(l.quiet)
		return senders.Wait()
	})
}

// eventsPerRequest is the number of events in a batch, which is for one actor.
const eventsPerRequest = 10

// send sends batches at the rate of one sender, until it is stopped.
func (l *rollingLoad) send(ctx context.Context, sender int) error {
	g := energymarket.NewGenerator(1, uint64(100+sender))
	pace := time.NewTicker(time.Duration(l.roll.senders*eventsPerRequest) * time.Second / time.Duration(l.roll.rate))
	defer pace.Stop()
	for {
		select {
		case <-l.stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-pace.C:
		}
		body, recipient := []byte{'['}, l.roll.names[g.IntN(len(l.roll.names))]
		for i := range eventsPerRequest {
			id := g.UUID()
			e := energymarket.Event{
				ID: id, Recipient: recipient, Origin: "Charges", ContentType: "ChargePriceList", DocumentType: "D18",
				SupportsBundling: true, Weight: 1, Payload: fmt.Appendf(nil, `{"Charge_MarketDocument":{"mRID":%q,"n":%d}}`, id, g.IntN(1000)),
			}
			l.ledger.SendEvent(sender, &e)
			if i > 0 {
				body = append(body, ',')
			}
			body = e.AppendJSON(body)
		}
		body = append(body, ']')
		_, answer, err := l.requestUntilDone(ctx, http.MethodPost, "/v1/data-available", "", body)
		if err != nil {
			return err
		}
		var counts struct{ Accepted, Duplicates int }
		if err := json.Unmarshal(answer, &counts); err != nil || counts.Accepted+counts.Duplicates != eventsPerRequest {
			return fmt.Errorf("%d events were sent, and the answer is %s", eventsPerRequest, answer)
		}
		l.mu.Lock()
		l.events += eventsPerRequest
		l.mu.Unlock()
	}
}

// pollInterval is how long an actor pauses after a Peek without data.
const pollInterval = 500 * time.Millisecond

// act peeks and dequeues as an actor, until the senders have stopped and no
// data is left.
func (l *rollingLoad) act(ctx context.Context, actor string) error {
	for {
		isQuiet := false
		select {
		case <-l.quiet:
			isQuiet = true
		default:
		}
		asked := l.ledger.Now()
		header, body, err := l.requestUntilDone(ctx, http.MethodGet, "/v1/peek", actor, nil)
		id := header.Get("MessageId")
		switch {
		case err != nil:
			return err
		case id == "" && isQuiet:
			return nil
		case id == "":
			if err := clock.Sleep(ctx, pollInterval); err != nil {
				return err
			}
			continue
		}
		if err := l.ledger.ReceiveBundle(actor, id, body, asked); err != nil {
			return err
		}
		if _, _, err := l.requestUntilDone(ctx, http.MethodDelete, "/v1/dequeue/"+id, actor, nil); err != nil {
			return err
		}
		l.ledger.Confirm(actor, id, true)
	}
}

// requestUntilDone repeats a request until the status is 2xx. It repeats the
// request only after a 503, or if there was no response. requestOnce records
// the failures.
func (l *rollingLoad) requestUntilDone(ctx context.Context, method, path, actor string, body []byte) (http.Header, []byte, error) {
	for {
		header, answer, status := l.requestOnce(ctx, method, path, actor, body)
		switch {
		case status/100 == 2:
			return header, answer, nil
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case status != 0 && status != http.StatusServiceUnavailable:
			return nil, nil, fmt.Errorf("%s %s: %d %s", method, path, status, answer)
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
}

// requestOnce sends a request to a hub, and records the status and the
// duration.
func (l *rollingLoad) requestOnce(ctx context.Context, method, path, actor string, body []byte) (http.Header, []byte, int) {
	url, done := l.roll.balancer.pick()
	defer done()
	l.mu.Lock()
	phase := l.phase
	l.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, method, url+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, 0
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	began := time.Now()
	resp, err := l.roll.balancer.client.Do(req)
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	what := strings.SplitN(path, "/", 4)[2]
	if err != nil {
		l.note(phase, what, "no answer", time.Since(began), fmt.Sprintf("%s %s: %v", method, path, err))
		return nil, nil, 0
	}
	name := strconv.Itoa(resp.StatusCode)
	wrong := ""
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		name += " with Retry-After"
	case resp.StatusCode/100 != 2:
		wrong = fmt.Sprintf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	l.note(phase, what, name, time.Since(began), wrong)
	return resp.Header, answer, resp.StatusCode
}

func (l *rollingLoad) note(phase, what, answer string, took time.Duration, wrong string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[answerKey{phase, answer}]++
	l.times[phase+"|"+what] = append(l.times[phase+"|"+what], took)
	if wrong != "" && len(l.failures) < 20 {
		l.failures = append(l.failures, phase+": "+wrong)
	}
}

// wrongAnswers describes the first failures that were not a 503 with
// Retry-After.
func (l *rollingLoad) wrongAnswers() []string { return l.failures }

func (l *rollingLoad) answersTable() string {
	var b strings.Builder
	b.WriteString("| answers | requests |\n| --- | --- |\n")
	for _, k := range slices.SortedFunc(maps.Keys(l.answers), func(a, b answerKey) int {
		return cmp.Or(slices.Index(phases, a.phase)-slices.Index(phases, b.phase), strings.Compare(a.answer, b.answer))
	}) {
		fmt.Fprintf(&b, "| %s: %s | %d |\n", k.phase, k.answer, l.answers[k])
	}
	return b.String() + "\n"
}

var phases = []string{"before", "while hubs are replaced", "after"}

func (l *rollingLoad) latencyTable() string {
	var b strings.Builder
	b.WriteString("| request | phase | p50 | p99 | longest |\n| --- | --- | --- | --- | --- |\n")
	for _, what := range []string{"data-available", "peek", "dequeue"} {
		for _, phase := range phases[:2] {
			times := l.times[phase+"|"+what]
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", what, phase, percentile(times, 50), percentile(times, 99), percentile(times, 100))
		}
	}
	return b.String()
}

// worst returns the highest p99 of all kinds of requests in a phase.
func (l *rollingLoad) worst(phase string) (longest time.Duration) {
	for key, times := range l.times {
		if strings.HasPrefix(key, phase+"|") {
			longest = max(longest, percentile(times, 99))
		}
	}
	return longest
}

// percentile returns a percentile of times, rounded to a tenth of a
// millisecond.
func percentile(times []time.Duration, p int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)].Round(100 * time.Microsecond)
}
