package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
	domainhub "github.com/messagehub/messagehub/domain/hub"
)

func (p *process) demoCommand() *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a day of a small energy market, and account for every event",
		Long: "Start a hub in a temporary folder, send it a day of a small energy market over HTTP,\n" +
			"drain it as the actors would, and compare what was received with what was sent.\n\n" +
			"The exit status is 1 if an event was lost, in two bundles, out of order or changed.",
		Args: cobra.NoArgs,
	}
	cmd.Flags().IntVar(&d.events, "events", 20_000, "`N` events over the day")
	cmd.Flags().IntVar(&d.backlog, "backlog", 60_000, "`N` events more that wait for one actor")
	cmd.Flags().Uint64Var(&d.seed, "seed", 1, "the same `N` plays the same day")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if d.events < 0 || d.backlog < 0 || d.events+d.backlog > 10_000_000 {
			return p.usage("--events, --backlog: want at least 0, and together at most 10,000,000")
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		d.p = p
		err := d.run(ctx)
		if err != nil && ctx.Err() != nil {
			return errors.New("stopped before the end, so nothing can be said about the hub")
		}
		return err
	})
	return cmd
}

// A demo sends the market first and drains it then, two actors at a time. Every
// third actor has two clients that know nothing of each other.
type demo struct {
	p               *process
	events, backlog int
	seed            uint64

	market   *energymarket.Market
	ledger   energymarket.Ledger
	meter    *meter
	tallies  []*tally // by actor
	sending  time.Duration
	draining time.Duration
}

// actorsAtOnce is how many actors drain at the same time.
const actorsAtOnce = 2

// hasTwoClients tells the actors whose two clients compete for the same bundles.
func hasTwoClients(actor int) bool { return actor%3 == 1 }

// asksByGroup tells the actors that ask for one group after the other; the
// others take what comes.
func asksByGroup(actor int) bool { return actor%2 == 1 }

// run plays the demo against a node that it starts and stops.
func (d *demo) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "messagehub-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", dir
	cfg.Admin.Token = config.Secret(rand.Text())
	cfg.BusListen, cfg.BlobListen, cfg.ServiceBus.FIFO, cfg.ServiceBus.Plain = "", "", "", "" // its domains send over HTTP
	inline, err := domain.ParseOrigin(energymarket.InlineOrigin)
	if err != nil {
		return err
	}
	cfg.Domains = config.Domains{{Name: inline, Content: domain.Inline}}
	d.meter = newMeter()
	n, err := node.Open(ctx, cfg, node.Options{
		Logger:        slog.New(slog.NewTextHandler(d.p.err, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redactLogError})),
		WrapHandler:   d.meter.handler,
		WrapTransport: d.meter.transport,
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
	hub, err := newClient(n.URL())
	if err != nil {
		return err
	}
	defer hub.close()
	if err := d.play(work, hub); err != nil {
		return err
	}
	hub.token = cfg.Admin.Token.Reveal()
	return d.check(work, hub)
}

// check validates what the hub has stored, after everything was drained. Two clients
// of one actor can leave an outdated hint behind: a Peek that began before the other's
// Dequeue writes an entry that the Dequeue has removed. It costs the next reader a
// request, so it is repaired and counted, and is no failure. A Save that was left
// unfinished (H5) is one: no process ended during the demo.
func (d *demo) check(ctx context.Context, hub *client) error {
	progress := newCheckProgress(d.p.err)
	report, err := hub.check(ctx, domainhub.CheckOptions{Repair: true, Progress: func(r domainhub.CheckReport) { progress.tell(&r) }})
	progress.Clear()
	switch {
	case err != nil:
		return fmt.Errorf("check: %w", err)
	case !report.Clean() || slices.ContainsFunc(report.Findings, func(f domainhub.Finding) bool { return f.Rule == "H5" }):
		fmt.Fprint(d.p.out, reportText(&report, true))
		return errors.New("what the hub has stored is not as it should be; the seed " + fmt.Sprint(d.seed) + " plays it again")
	}
	if report.Mended > 0 {
		_, err = fmt.Fprintf(d.p.out, "check: clean, outdated hints repaired: %d\n", report.Mended)
		return err
	}
	_, err = fmt.Fprintln(d.p.out, "check: clean")
	return err
}

// play sends, drains and judges.
func (d *demo) play(ctx context.Context, hub *client) error {
	d.market, d.ledger = energymarket.New(d.events, d.backlog, d.seed), energymarket.NewLedger()
	fmt.Fprintf(d.p.out, "A day of a small energy market: %d actors, %d events, and a backlog of %d for %s.\n",
		len(d.market.Actors), d.events, d.backlog, d.market.Actors[energymarket.BacklogOwner].Name)

	began := time.Now()
	if err := d.send(ctx, hub); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	d.sending = time.Since(began)
	began = time.Now()
	if err := d.drain(ctx, hub); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	d.draining = time.Since(began)
	verdict := d.ledger.Check()
	d.report(verdict)
	if !verdict.OK() {
		return errors.New("the market was not served as promised; the seed " + fmt.Sprint(d.seed) + " plays it again")
	}
	return nil
}

// send sends all events in order, in requests of a thousand.
func (d *demo) send(ctx context.Context, hub *client) error {
	const most = 1000
	progress := terminal.NewEventProgress(d.p.err, "sent", d.events+d.backlog)
	defer progress.Clear()
	s := &sender{p: d.p, hub: hub, timeout: time.Minute}
	body := []byte{'['}
	waiting := 0
	flush := func() error {
		if waiting == 0 {
			return nil
		}
		got, err := s.post(ctx, append(body, ']'), progress)
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
			if waiting++; waiting == most || len(body) > batchBytes {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// drain lets every actor fetch everything.
func (d *demo) drain(ctx context.Context, hub *client) error {
	progress := terminal.NewEventProgress(d.p.err, "drained", d.events+d.backlog)
	defer progress.Clear()
	var mu sync.Mutex
	onward := func(events int) {
		mu.Lock()
		defer mu.Unlock()
		progress.Add(events, 0)
	}
	actors, ctx := errgroup.WithContext(ctx)
	actors.SetLimit(actorsAtOnce)
	for i, actor := range d.market.Actors {
		t := new(tally)
		d.tallies = append(d.tallies, t)
		actors.Go(func() error {
			clients, ctx := errgroup.WithContext(ctx)
			for range 1 + count(hasTwoClients(i)) {
				a := &actorClient{hub: hub, actor: actor.GLN, ledger: d.ledger, tally: t, onward: onward}
				clients.Go(func() error { return a.drainAll(ctx, asksByGroup(i)) })
			}
			return clients.Wait()
		})
	}
	return actors.Wait()
}

// drainAll takes what there is, from everywhere or group by group.
func (a *actorClient) drainAll(ctx context.Context, byGroup bool) error {
	if !byGroup {
		return a.drain(ctx, "/v1/peek")
	}
	for _, group := range domain.DefaultGroups().All() {
		if err := a.drain(ctx, "/v1/peek/"+group.String()); err != nil {
			return err
		}
	}
	return nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
