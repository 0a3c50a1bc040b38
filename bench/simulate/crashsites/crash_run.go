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

// A crashRun is one hub in one folder, those who send and those who fetch, and a row of
// cells: the hub dies at each, and is started again.
type crashRun struct {
	place    hubSetup
	stage    stage
	seed     uint64
	folder   string
	program  string        // messagehub
	patience time.Duration // for a step to come by

	engines  *engines // if they are apart
	listener *os.File
	orders   nodeOrders
	hub      *childProcess
	ledger   *crashLedger
	load     *clientLoad
	domain   *busDomain
	random   *rand.Rand

	died   []string // where, in order
	kills  map[crashSite]int
	waited map[crashSite]time.Duration // the longest time for a step to come by
	missed []crashSite
	mended int64 // by check
}

func newCrashRun(p hubSetup, s stage, seed uint64, folder, program string) *crashRun {
	return &crashRun{
		place: p, stage: s, seed: seed, folder: folder, program: program, patience: 60 * time.Second,
		ledger: newCrashLedger(), random: rand.New(rand.NewPCG(seed, 1)),
		kills: make(map[crashSite]int), waited: make(map[crashSite]time.Duration),
	}
}

// killAtSites lets the hub die at each of the cells, drains it, and says what is wrong.
func (w *crashRun) killAtSites(ctx context.Context, cells []crashSite) (err error) {
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	if err := w.openRun(ctx, client); err != nil {
		return err
	}
	defer w.closeRun()
	if w.stage == sweeping {
		return w.runSweeping(ctx, cells)
	}
	if w.stage == pushing {
		return w.runPushing(ctx, cells)
	}
	if w.stage == watching {
		return w.runWatching(ctx, cells)
	}
	if w.stage.isOfObjects() {
		return w.runStoring(ctx, cells)
	}
	return w.workUnderLoad(ctx, func(ctx context.Context) error {
		for _, c := range cells {
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

// runSweeping fills and drains the hub, lets it die while it removes what was fetched, and
// then uses it as before. What is sent and answered is not sent again, and nothing
// waits on the bus: what is removed is not known any more.
func (w *crashRun) runSweeping(ctx context.Context, cells []crashSite) error {
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
	for _, c := range cells {
		if err := w.killAtSite(ctx, c); err != nil {
			return err
		}
	}
	w.orders.Retention, w.orders.SweepEvery, w.orders.Sweeping = 0, 0, false
	return w.workUnderLoad(ctx, fill)
}

// openRun makes what lives as long as the world.
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
	if err = errors.Join(err, listener.Close()); err != nil { // the file is enough
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
		w.orders.Push = true // with the ledger of objects
	}
	w.domain = &busDomain{load: w.load, random: rand.New(rand.NewPCG(w.seed, 2)), http: client}
	return nil
}

func (w *crashRun) closeRun() {
	w.hub.killProcess()
	if w.domain != nil {
		_ = w.domain.stopAndWait() // the world is over, whatever it says
	}
	w.engines.killAll()
	if w.listener != nil {
		_ = w.listener.Close()
	}
}

// workUnderLoad calls work while the load runs, which then drains the hub. The hub that
// work leaves is stopped, and what it leaves is checked.
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
		return fmt.Errorf("%w\nthe hub had died at: %s\nand the last one has said: %s", err, strings.Join(w.died, "; "), w.hub.errorOutput())
	}
	return w.stopAndVerify(context.WithoutCancel(ctx))
}

// awaitNotified returns when the domain was told of all that dead hubs have left untold. The
// load goes on meanwhile: with each bundle that is fetched, an actor's notices go.
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
			return fmt.Errorf("the domain was not told of %v: %w", left, ctx.Err())
		}
	}
}

// awaitDrained returns when the domain has sent what it was sending, all was fetched, and
// the domain was told of what is its own.
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
			return fmt.Errorf("%d events were not fetched, and of %d bundles the domain was not told: %w\n%s",
				missing, len(untold), ctx.Err(), w.ledger.Check().Details())
		}
	}
}

// stopAndVerify stops the hub and demands that nothing is wrong.
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

// checkStore demands that what is stored is sound but for what a repair can mend, and is
// clean after that.
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
			return fmt.Errorf("check, repair %t: %d found, %d mended\n%s", repair, report.Found, report.Mended, text.String())
		}
	}
	return nil
}
