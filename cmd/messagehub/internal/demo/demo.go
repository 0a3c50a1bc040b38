// Package demo runs a day of a small energy market against a hub that it
// starts, and accounts for every event: it sends the events of package
// energymarket, drains them as the actors would, and compares the received
// events with the sent ones.
//
// Most actors poll; the hub calls the remaining actors. The receiver of one
// actor is unavailable until its dead letter is replayed. Afterwards a producer
// broadcasts to five consumers of a channel: one is slow, and one fails for a
// while. An actor watches a bundle, and is called when the bundle is dequeued.
// Finally the demo deletes the content of a bundle, and the ledger of objects
// shows that the domain created the content again.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/checkreport"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
	domainhub "github.com/messagehub/messagehub/domain/hub"
)

// A Demo starts a hub, sends the events of the market, and then drains two
// actors at a time. Every third actor has two clients, which compete. An actor
// that the hub calls drains after each call, even while events are being sent.
type Demo struct {
	Events, Backlog int
	Seed            uint64

	Out, Err io.Writer    // Out receives the report, and Err the progress
	Logger   *slog.Logger // log of the hub

	Registry *prometheus.Registry // receives the hub's metrics; nil: a new registry

	market   *energymarket.Market
	ledger   energymarket.Ledger
	meter    *meter
	tallies  []*tally // by actor
	called   []*calledActor
	patience time.Duration // maximum wait for the hub's call of an actor
	sending  time.Duration
	draining time.Duration
}

// actorsAtOnce is the number of actors that drain concurrently.
const actorsAtOnce = 2

// hasTwoClients reports whether an actor has two clients, which compete for its
// bundles.
func hasTwoClients(actor int) bool { return actor%3 == 1 && !isCalled(actor) }

// isCalled reports whether the hub calls an actor; otherwise the actor polls.
func isCalled(actor int) bool { return actor%4 == 2 }

// drainsByGroup reports whether an actor drains its groups one after another,
// instead of all groups together.
func drainsByGroup(actor int) bool { return actor%2 == 1 }

// Run runs the demo against a hub in a temporary folder. It fails if an event
// was lost, delivered in two bundles, out of order, or changed.
func (d *Demo) Run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "messagehub-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", dir
	cfg.Admin.Token = config.Secret(rand.Text())
	cfg.BusListen, cfg.BlobListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.ServiceBus.FIFO, cfg.ServiceBus.Plain, cfg.Objects.Queue = "", "", "" // no queues are needed, because the demo's domains send over HTTP
	inline, err := domain.ParseOrigin(energymarket.InlineOrigin)
	if err != nil {
		return err
	}
	onRequest, err := domain.ParseOrigin(contentOrigin)
	if err != nil {
		return err
	}
	cfg.Push.InsecureHTTP, cfg.Push.Allow = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	cfg.Push.Timeout, cfg.Push.Delays = callTimeout, callDelays
	cfg.Domains = config.Domains{{Name: inline, Content: domain.Inline}, {Name: onRequest, Content: domain.Request}}
	broker, err := newBrokerDemo(ctx, d.Out)
	if err != nil {
		return err
	}
	defer broker.closeListeners()
	if err := broker.setParties(&cfg.Broker); err != nil {
		return err
	}
	tokens, stopIssuer, err := issueTokens(ctx, &cfg)
	if err != nil {
		return err
	}
	defer stopIssuer()
	d.meter, d.patience = newMeter(), time.Minute
	n, err := node.Open(ctx, cfg, node.Options{
		Logger:        d.Logger,
		Registry:      d.Registry,
		WrapHandler:   d.meter.wrapHandler,
		WrapTransport: d.meter.wrapTransport,
	})
	if err != nil {
		return err
	}
	work, finish := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	var failed error
	running.Go(func() {
		failed = n.Run(work)
		finish(failed)
	})
	defer func() {
		finish(nil)
		running.Wait()
		err = errors.Join(err, failed)
	}()
	hub, err := hubclient.New(n.URL())
	if err != nil {
		return err
	}
	defer hub.Close()
	hub.TokenOf = tokens.tokenOf
	if err := d.playAll(work, hub); err != nil {
		return err
	}
	if err := broker.runAll(work, n.URL()); err != nil {
		return fmt.Errorf("the webhook broker: %w", err)
	}
	if err := d.watchBundle(work, hub, n.URL()); err != nil {
		return fmt.Errorf("the watch: %w", err)
	}
	if err := d.showContents(work, hub, n, dir); err != nil {
		return fmt.Errorf("the ledger of objects: %w", err)
	}
	return d.checkStored(work, hub)
}

// checkStored checks and repairs the store after all events were drained. Two
// clients of one actor can store an outdated hint: a Peek that began before the
// other client's Dequeue may write an entry that the Dequeue removed. The hint
// costs the next reader a request, so checkStored repairs and counts such
// hints, and succeeds. It fails if a Save is unfinished (H5), because no
// process ended during the demo.
func (d *Demo) checkStored(ctx context.Context, hub *hubclient.Client) error {
	progress := checkreport.NewProgress(d.Err)
	report, err := hub.Check(ctx, domainhub.CheckOptions{Repair: true, Progress: func(r domainhub.CheckReport) { progress.Report(&r) }})
	progress.Clear()
	switch {
	case err != nil:
		return fmt.Errorf("check: %w", err)
	case !report.Clean() || slices.ContainsFunc(report.Findings, func(f domainhub.Finding) bool { return f.Rule == "H5" }):
		fmt.Fprint(d.Out, checkreport.Text(&report, true))
		return errors.New("the check found faults in the hub's store; the seed " + fmt.Sprint(d.Seed) + " repeats the run")
	}
	if report.Repaired > 0 {
		_, err = fmt.Fprintf(d.Out, "check: clean, outdated hints repaired: %d\n", report.Repaired)
		return err
	}
	_, err = fmt.Fprintln(d.Out, "check: clean")
	return err
}

// playAll sends and drains all events, and prints the report.
func (d *Demo) playAll(ctx context.Context, hub *hubclient.Client) error {
	d.market, d.ledger = energymarket.New(d.Events, d.Backlog, d.Seed), energymarket.NewLedger()
	fmt.Fprintf(d.Out, "A day of a small energy market: %d actors, %d events, and a backlog of %d for %s.\n",
		len(d.market.Actors), d.Events, d.Backlog, d.market.Actors[energymarket.BacklogOwner].Name)

	for range d.market.Actors {
		d.tallies = append(d.tallies, new(tally))
	}
	if err := d.sendAndFetch(ctx, hub); err != nil {
		return err
	}
	verdict := d.ledger.Check()
	d.printReport(verdict)
	if !verdict.OK() {
		return errors.New("the hub did not serve the market correctly; the seed " + fmt.Sprint(d.Seed) + " repeats the run")
	}
	return nil
}

// sendAndFetch sends all events, and lets every actor fetch its events.
func (d *Demo) sendAndFetch(ctx context.Context, hub *hubclient.Client) (err error) {
	serving, stop := context.WithCancel(ctx)
	var receivers errgroup.Group
	defer func() {
		stop()
		err = errors.Join(err, receivers.Wait())
	}()
	if err := d.subscribeActors(ctx, hub); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	for _, a := range d.called {
		receivers.Go(func() error { return a.serveCalls(serving) })
	}
	sent := make(chan struct{})
	work, working := errgroup.WithContext(ctx)
	for _, a := range d.called {
		if !a.isAway.Load() {
			work.Go(func() error { return d.runCalledActor(working, a, sent) })
		}
	}
	work.Go(func() error {
		began := time.Now()
		if err := d.sendAll(working, hub); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		close(sent)
		d.sending = time.Since(began)
		began = time.Now()
		if err := d.drainPolling(working, hub); err != nil {
			return fmt.Errorf("drain: %w", err)
		}
		d.draining = time.Since(began)
		return nil
	})
	if err := work.Wait(); err != nil {
		return err
	}
	return d.recoverActor(ctx, sent)
}

// sendAll sends all events in order, a thousand per request.
func (d *Demo) sendAll(ctx context.Context, hub *hubclient.Client) error {
	const most = 1000
	progress := terminal.NewEventProgress(d.Err, "sent", d.Events+d.Backlog)
	defer progress.Clear()
	poster := &hubclient.Poster{Hub: hub, Timeout: time.Minute}
	body := []byte{'['}
	waiting := 0
	flush := func() error {
		if waiting == 0 {
			return nil
		}
		got, err := poster.Post(ctx, append(body, ']'), progress.Printf)
		if err == nil && got.Accepted != waiting {
			err = fmt.Errorf("sent %d new events, and the hub says that it accepted %d", waiting, got.Accepted)
		}
		progress.Add(waiting, 0)
		body, waiting = body[:1], 0
		return err
	}
	for _, part := range [][]energymarket.Event{d.market.Backlog, d.market.Day} {
		for i := range part {
			if waiting > 0 {
				body = append(body, ',')
			}
			d.ledger.SendEvent(0, &part[i])
			body = part[i].AppendJSON(body)
			if waiting++; waiting == most || len(body) > hubclient.BatchBytes {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// drainPolling drains all actors that poll, two at a time.
func (d *Demo) drainPolling(ctx context.Context, hub *hubclient.Client) error {
	progress := terminal.NewEventProgress(d.Err, "drained", d.ledger.Outstanding(d.pollingActors()...))
	defer progress.Clear()
	var mu sync.Mutex
	onBundle := func(events int) {
		mu.Lock()
		defer mu.Unlock()
		progress.Add(events, 0)
	}
	actors, ctx := errgroup.WithContext(ctx)
	actors.SetLimit(actorsAtOnce)
	for i, actor := range d.market.Actors {
		if isCalled(i) {
			continue
		}
		t := d.tallies[i]
		actors.Go(func() error {
			clients, ctx := errgroup.WithContext(ctx)
			for range 1 + countIf(hasTwoClients(i)) {
				a := &actorClient{hub: hub, actor: actor.GLN, ledger: d.ledger, tally: t, onBundle: onBundle}
				clients.Go(func() error { return a.drainAll(ctx, drainsByGroup(i)) })
			}
			return clients.Wait()
		})
	}
	return actors.Wait()
}

// drainAll fetches all data of the actor: group by group if byGroup is true,
// otherwise from all groups together.
func (a *actorClient) drainAll(ctx context.Context, byGroup bool) error {
	if !byGroup {
		return a.drainGroup(ctx, "")
	}
	for _, group := range domain.DefaultGroups().All() {
		if err := a.drainGroup(ctx, group.String()); err != nil {
			return err
		}
	}
	return nil
}

func countIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
