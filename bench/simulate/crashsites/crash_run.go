//go:build unix

package crashsites

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/domain/hub"
)

// A crashRun is one hub in one folder with its clients. The hub is killed at one crash site after the other, and
// started again each time.
type crashRun struct {
	place    hubSetup
	stage    stage
	seed     uint64
	folder   string
	program  string        // path of messagehub
	patience time.Duration // how long to wait for a step

	engines  *engines // nil if the hub embeds them
	listener *os.File
	orders   nodeOrders
	hub      *childProcess
	ledger   *crashLedger
	load     *clientLoad
	domain   *busDomain
	random   *rand.Rand

	died   []string // crash sites of the kills, in order
	kills  map[crashSite]int
	waited map[crashSite]time.Duration // longest wait for a step
	missed []crashSite
	mended int64 // repairs by check
}

func newCrashRun(p hubSetup, s stage, seed uint64, folder, program string) *crashRun {
	return &crashRun{
		place: p, stage: s, seed: seed, folder: folder, program: program, patience: 60 * time.Second,
		ledger: newCrashLedger(), random: rand.New(rand.NewPCG(seed, 1)),
		kills: make(map[crashSite]int), waited: make(map[crashSite]time.Duration),
	}
}

// killAtSites kills the hub at each of the crash sites, drains it, and returns the first violation.
func (w *crashRun) killAtSites(ctx context.Context, sites []crashSite) (err error) {
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	if err := w.openRun(ctx, client); err != nil {
		return err
	}
	defer w.closeRun()
	if w.stage == sweeping {
		return w.runSweeping(ctx, sites)
	}
	if w.stage == pushing {
		return w.runPushing(ctx, sites)
	}
	if w.stage == watching {
		return w.runWatching(ctx, sites)
	}
	if w.stage.isOfObjects() {
		return w.runStoring(ctx, sites)
	}
	return w.workUnderLoad(ctx, func(ctx context.Context) error {
		for _, c := range sites {
			if err := w.killAtSite(ctx, c); err != nil {
				return err
			}
		}
		if err := w.restartHub(ctx, crashSite{}); err != nil {
			return err
		}
		return w.awaitNotified(ctx)
	})
}

// runSweeping fills and drains the hub, kills it while it sweeps, and then uses it as before. Answered events are not
// sent again, and no event waits on the bus, because a hub does not recognize swept events.
func (w *crashRun) runSweeping(ctx context.Context, sites []crashSite) error {
	w.domain.silent = true
	fill := func(ctx context.Context) error {
		if err := w.restartHub(ctx, crashSite{}); err != nil {
			return err
		}
		const enough = 150
		before, _ := w.ledger.Size()
		for {
			_, changed := w.ledger.countOutstanding()
			if events, _ := w.ledger.Size(); events >= before+enough {
				return nil
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if err := w.workUnderLoad(ctx, fill); err != nil {
		return err
	}
	w.orders.Retention, w.orders.SweepEvery, w.orders.Sweeping = time.Millisecond, 20*time.Millisecond, true
	for _, c := range sites {
		if err := w.killAtSite(ctx, c); err != nil {
			return err
		}
	}
	w.orders.Retention, w.orders.SweepEvery, w.orders.Sweeping = 0, 0, false
	return w.workUnderLoad(ctx, fill)
}

// openRun creates what lives as long as the run.
func (w *crashRun) openRun(ctx context.Context, client *http.Client) (err error) {
	defer func() {
		if err != nil {
			w.closeRun()
		}
	}()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.listener, err = listener.(*net.TCPListener).File()
	if err = errors.Join(err, listener.Close()); err != nil { // its file stays open
		return err
	}
	w.orders = nodeOrders{Data: filepath.Join(w.folder, "hub"), BusListen: "127.0.0.1:0", BlobListen: "127.0.0.1:0"}
	if w.place == apart {
		if w.engines, err = startEngines(ctx, w.program, w.folder); err != nil {
			return err
		}
		w.orders.Cosmos, w.orders.Bus, w.orders.BusAddress, w.orders.Blob = w.engines.cosmos, w.engines.bus, w.engines.busAddress, w.engines.account
		w.orders.BusListen, w.orders.BlobListen = "", ""
	}
	if w.stage == tailing || w.stage == sweeping && w.seed%2 == 0 {
		w.orders.TailEvents = tailEvents
	}
	w.load = &clientLoad{url: "http://" + listener.Addr().String(), http: client, ledger: w.ledger}
	if w.stage == marking {
		w.load.content = filepath.Join(w.orders.Data, "content")
		w.orders.Push = true // together with the object ledger
	}
	w.domain = &busDomain{load: w.load, random: rand.New(rand.NewPCG(w.seed, 2)), http: client}
	return nil
}

func (w *crashRun) closeRun() {
	w.hub.killProcess()
	if w.domain != nil {
		_ = w.domain.stopAndWait() // errors at the end of the run do not matter
	}
	w.engines.killAll()
	if w.listener != nil {
		_ = w.listener.Close()
	}
}

// workUnderLoad calls work under load, lets the load drain the hub, and stops and checks the hub that work leaves
// running.
func (w *crashRun) workUnderLoad(ctx context.Context, work func(context.Context) error) error {
	w.load.stop = make(chan struct{})
	quiet := make(chan struct{})
	all, ctx := errgroup.WithContext(ctx)
	var senders errgroup.Group
	for _, actor := range actors {
		writing, acting := rand.New(rand.NewPCG(w.seed, w.random.Uint64())), rand.New(rand.NewPCG(w.seed, w.random.Uint64()))
		senders.Go(func() error { return w.load.writeBatches(ctx, actor, writing) })
		all.Go(func() error { return w.load.runActor(ctx, actor, acting, quiet) })
	}
	all.Go(func() error {
		err := work(ctx)
		close(w.load.stop)
		if err == nil {
			err = w.awaitDrained(ctx)
		}
		return err
	})
	all.Go(func() error {
		err := senders.Wait()
		close(quiet)
		return err
	})
	if err := all.Wait(); err != nil {
		w.hub.killProcess()
		return fmt.Errorf("%w\nthe hub was killed at: %s\nthe output of the last one: %s", err, strings.Join(w.died, "; "), w.hub.errorOutput())
	}
	return w.stopAndVerify(context.WithoutCancel(ctx))
}

// awaitNotified waits until the domain has received all notices that killed hubs left. The load continues, because a
// notice is delivered when its actor fetches another bundle.
func (w *crashRun) awaitNotified(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	left, _ := w.ledger.unnotifiedBundles()
	for {
		untold, changed := w.ledger.unnotifiedBundles()
		left = slices.DeleteFunc(left, func(name string) bool { return !slices.Contains(untold, name) })
		if len(left) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the domain was not notified of %v: %w", left, ctx.Err())
		}
	}
}

// awaitDrained waits until the domain has sent its current batch, all events are fetched, and the domain has received
// its notices.
func (w *crashRun) awaitDrained(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*w.patience)
	defer cancel()
	for {
		missing, changed := w.ledger.countOutstanding(actors...)
		untold, changedToo := w.ledger.unnotifiedBundles()
		if missing == 0 && len(untold) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-changedToo:
		case <-ctx.Done():
			return fmt.Errorf("%d events were not fetched, and the domain was not notified of %d bundles: %w\n%s",
				missing, len(untold), ctx.Err(), w.ledger.Check().Details())
		}
	}
}

// stopAndVerify stops the hub, and returns an error unless all is right.
func (w *crashRun) stopAndVerify(ctx context.Context) error {
	if err := w.domain.stopAndWait(); err != nil {
		return fmt.Errorf("domain: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*w.patience)
	defer cancel()
	if err := w.hub.stopProcess(ctx); err != nil {
		return err
	}
	if v := w.ledger.Check(); !v.OK() {
		return errors.New(v.String() + "\n" + v.Details())
	}
	return w.checkStore(ctx)
}

// checkStore returns an error if a check finds damage, or finds anything after a repair.
func (w *crashRun) checkStore(ctx context.Context) error {
	cfg, err := w.orders.hubConfig()
	if err != nil {
		return err
	}
	for _, repair := range []bool{true, false} {
		report, err := node.Check(ctx, cfg, hub.CheckOptions{Repair: repair}, nil)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		w.mended += report.Mended
		if !report.Clean() || !repair && report.Found > 0 {
			var text strings.Builder
			for i := range report.Findings {
				fmt.Fprintln(&text, report.Findings[i].String())
			}
			return fmt.Errorf("check, repair %t: %d found, %d repaired\n%s", repair, report.Found, report.Mended, text.String())
		}
	}
	return nil
}
