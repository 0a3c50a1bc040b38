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

// A crashRun is a hub in a folder, and the hub's clients. The hub is killed at one crash site after the other, and
// started again after each kill.
type crashRun struct {
	place    hubSetup
	stage    stage
	seed     uint64
	folder   string
	program  string        // path of messagehub
	patience time.Duration // maximum time to wait for a step

	engines  *engines // external engines; nil if the hub embeds its engines
	listener *os.File
	orders   nodeOrders
	hub      *childProcess
	ledger   *crashLedger
	load     *clientLoad
	domain   *busDomain
	random   *rand.Rand

	killed   []string // crash sites of the kills, in order
	kills    map[crashSite]int
	waited   map[crashSite]time.Duration // longest wait for a step
	missed   []crashSite
	repaired int64 // number of repairs that the checks made
}

func newCrashRun(p hubSetup, s stage, seed uint64, folder, program string) *crashRun {
	return &crashRun{
		place: p, stage: s, seed: seed, folder: folder, program: program, patience: 60 * time.Second,
		ledger: newCrashLedger(), random: rand.New(rand.NewPCG(seed, 1)),
		kills: make(map[crashSite]int), waited: make(map[crashSite]time.Duration),
	}
}

// killAtSites kills the hub at each of the crash sites, drains it, and returns the first violation.
func (run *crashRun) killAtSites(ctx context.Context, sites []crashSite) (err error) {
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	if err := run.openRun(ctx, client); err != nil {
		return err
	}
	defer run.closeRun()
	if run.stage == sweeping {
		return run.runSweeping(ctx, sites)
	}
	if run.stage == pushing {
		return run.runPushing(ctx, sites)
	}
	if run.stage == watching {
		return run.runWatching(ctx, sites)
	}
	if run.stage.usesObjectNode() {
		return run.runStoring(ctx, sites)
	}
	return run.workUnderLoad(ctx, func(ctx context.Context) error {
		for _, c := range sites {
			if err := run.killAtSite(ctx, c); err != nil {
				return err
			}
		}
		if err := run.restartHub(ctx, crashSite{}); err != nil {
			return err
		}
		return run.awaitNotified(ctx)
	})
}

// runSweeping fills and drains the hub, kills it while it sweeps, and then fills and drains it again. A hub does not
// recognize duplicates of swept events. So answered events are not sent again, and the bus has no waiting events.
func (run *crashRun) runSweeping(ctx context.Context, sites []crashSite) error {
	run.domain.silent = true
	fill := func(ctx context.Context) error {
		if err := run.restartHub(ctx, crashSite{}); err != nil {
			return err
		}
		const enough = 150
		before, _ := run.ledger.Size()
		for {
			_, changed := run.ledger.countOutstanding()
			if events, _ := run.ledger.Size(); events >= before+enough {
				return nil
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if err := run.workUnderLoad(ctx, fill); err != nil {
		return err
	}
	run.orders.Retention, run.orders.SweepEvery, run.orders.Sweeping = time.Millisecond, 20*time.Millisecond, true
	for _, c := range sites {
		if err := run.killAtSite(ctx, c); err != nil {
			return err
		}
	}
	run.orders.Retention, run.orders.SweepEvery, run.orders.Sweeping = 0, 0, false
	return run.workUnderLoad(ctx, fill)
}

// openRun starts the external engines, and creates the listener, the load and the domain of the run.
func (run *crashRun) openRun(ctx context.Context, client *http.Client) (err error) {
	defer func() {
		if err != nil {
			run.closeRun()
		}
	}()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	run.listener, err = listener.(*net.TCPListener).File()
	if err = errors.Join(err, listener.Close()); err != nil { // closes only this descriptor; its duplicate in run.listener stays open
		return err
	}
	run.orders = nodeOrders{Data: filepath.Join(run.folder, "hub"), BusListen: "127.0.0.1:0", BlobListen: "127.0.0.1:0"}
	if run.place == apart {
		if run.engines, err = startEngines(ctx, run.program, run.folder); err != nil {
			return err
		}
		run.orders.Cosmos, run.orders.Bus, run.orders.BusAddress, run.orders.Blob = run.engines.cosmos, run.engines.bus, run.engines.busAddress, run.engines.account
		run.orders.BusListen, run.orders.BlobListen = "", ""
	}
	if run.stage == tailing || run.stage == sweeping && run.seed%2 == 0 {
		run.orders.TailEvents = tailEvents
	}
	run.load = &clientLoad{url: "http://" + listener.Addr().String(), http: client, ledger: run.ledger}
	if run.stage == marking {
		run.load.content = filepath.Join(run.orders.Data, "content")
		run.orders.Push = true // the object ledger needs the push side
	}
	run.domain = &busDomain{load: run.load, random: rand.New(rand.NewPCG(run.seed, 2)), http: client}
	return nil
}

func (run *crashRun) closeRun() {
	run.hub.killProcess()
	if run.domain != nil {
		_ = run.domain.stopAndWait() // errors at the end of the run do not matter
	}
	run.engines.killAll()
	if run.listener != nil {
		_ = run.listener.Close()
	}
}

// workUnderLoad calls work under load. Then it waits until the load has drained the running hub, stops the hub, and
// checks the store.
func (run *crashRun) workUnderLoad(ctx context.Context, work func(context.Context) error) error {
	run.load.stop = make(chan struct{})
	quiet := make(chan struct{})
	all, ctx := errgroup.WithContext(ctx)
	var senders errgroup.Group
	for _, actor := range actors {
		writing, acting := rand.New(rand.NewPCG(run.seed, run.random.Uint64())), rand.New(rand.NewPCG(run.seed, run.random.Uint64()))
		senders.Go(func() error { return run.load.writeBatches(ctx, actor, writing) })
		all.Go(func() error { return run.load.runActor(ctx, actor, acting, quiet) })
	}
	all.Go(func() error {
		err := work(ctx)
		close(run.load.stop)
		if err == nil {
			err = run.awaitDrained(ctx)
		}
		return err
	})
	all.Go(func() error {
		err := senders.Wait()
		close(quiet)
		return err
	})
	if err := all.Wait(); err != nil {
		run.hub.killProcess()
		return fmt.Errorf("%w\nthe hub was killed at: %s\nthe output of the last one: %s", err, strings.Join(run.killed, "; "), run.hub.errorOutput())
	}
	return run.stopAndVerify(context.WithoutCancel(ctx))
}

// awaitNotified waits until the domain has received all notices that killed hubs did not deliver. The load continues,
// because a killed hub's notice is delivered when the actor fetches its next bundle.
func (run *crashRun) awaitNotified(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, run.patience)
	defer cancel()
	left, _ := run.ledger.unnotifiedBundles()
	for {
		untold, changed := run.ledger.unnotifiedBundles()
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

// awaitDrained waits until the domain has sent its current batch, all events are dequeued, and the domain has received
// all notices.
func (run *crashRun) awaitDrained(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*run.patience)
	defer cancel()
	for {
		missing, changed := run.ledger.countOutstanding(actors...)
		untold, changedToo := run.ledger.unnotifiedBundles()
		if missing == 0 && len(untold) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-changedToo:
		case <-ctx.Done():
			return fmt.Errorf("%d events were not fetched, and the domain was not notified of %d bundles: %w\n%s",
				missing, len(untold), ctx.Err(), run.ledger.Check().Details())
		}
	}
}

// stopAndVerify stops the hub, and returns an error unless its final state is correct.
func (run *crashRun) stopAndVerify(ctx context.Context) error {
	if err := run.domain.stopAndWait(); err != nil {
		return fmt.Errorf("domain: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*run.patience)
	defer cancel()
	if err := run.hub.stopProcess(ctx); err != nil {
		return err
	}
	if v := run.ledger.Check(); !v.OK() {
		return errors.New(v.String() + "\n" + v.Details())
	}
	return run.checkStore(ctx)
}

// checkStore checks the store twice. It returns an error if the first check, which repairs, finds damage, or if the
// second check has any finding.
func (run *crashRun) checkStore(ctx context.Context) error {
	cfg, err := run.orders.hubConfig()
	if err != nil {
		return err
	}
	for _, repair := range []bool{true, false} {
		report, err := node.Check(ctx, cfg, hub.CheckOptions{Repair: repair}, nil)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		run.repaired += report.Repaired
		if !report.Clean() || !repair && report.Found > 0 {
			var text strings.Builder
			for i := range report.Findings {
				fmt.Fprintln(&text, report.Findings[i].String())
			}
			return fmt.Errorf("check, repair %t: %d found, %d repaired\n%s", repair, report.Found, report.Repaired, text.String())
		}
	}
	return nil
}
