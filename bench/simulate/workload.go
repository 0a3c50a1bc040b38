package simulate

import (
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
)

// A workload holds what the clients do and what checks it.
type workload struct {
	ledger        *referenceLedger
	checkers      map[containers.Judge]invariantChecker
	coverObserver *coverageObserver
	poison        *poisonMessages
	outbox        outbox
	mailboxes     *mailboxHistories
	isDone        bool // all clients have finished
}

// runWorkload runs all clients in one phase or several. Between two phases it waits for longer than the retention.
func (sim *simulation) runWorkload() error {
	senders, err := sim.newSenders()
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range senders {
			s.closePublisher()
		}
	}()
	var makers sync.WaitGroup
	over := make(chan struct{})
	if sim.plan.requestedOrigin != (domain.Origin{}) {
		m := &contentDomain{baseClient: sim.newClient("maker", 50), laterRNG: random.New(sim.options.Seed, 51)}
		makers.Go(func() { m.runUntil(over) })
	}
	defer makers.Wait()
	defer close(over)
	actors := sim.newActors()
	for day := range sim.plan.phases {
		if day > 0 && !sim.waitForRetention(day) {
			return nil
		}
		if err := sim.runPhase(day, senders, actors); err != nil || sim.ctx.Err() != nil {
			return err
		}
		for _, s := range senders { // delivered events are not repeated in later phases
			s.sent = nil
		}
	}
	return sim.verifyEnd()
}

// runPhase runs all clients until all events are delivered.
func (sim *simulation) runPhase(day int, senders []*sender, actors []*actorClient) error {
	var fetching, sending sync.WaitGroup
	finish := make(chan struct{})
	for _, a := range actors {
		fetching.Go(func() { a.runUntil(finish) })
	}
	if sim.plan.hasOperators {
		o := &operator{sim.newClient("operator", uint64(70+day))} //nolint:gosec // there are few
		fetching.Go(func() { o.runUntil(finish) })
	}
	if sim.plan.hasLoadBursts {
		c := &loadBurst{sim.newClient("crowd", uint64(94+day))} //nolint:gosec // there are few
		fetching.Go(func() { c.runUntil(finish) })
	}
	if sim.env.issuer != nil && day == 0 {
		x := sim.newTokenIntruder()
		fetching.Go(func() { x.runUntil(finish) })
	}
	if sim.plan.deletesContent {
		x, err := sim.newContentDeleter(day)
		if err != nil {
			return err
		}
		fetching.Go(func() { x.runUntil(finish) })
	}
	if sim.plan.misconfiguresBus && day == 0 {
		k, err := sim.newBusMisconfigurer()
		if err != nil {
			return err
		}
		fetching.Go(func() { k.runUntil(finish) })
	}
	for _, s := range senders {
		sending.Go(s.sendBatches)
	}
	sending.Wait()
	sim.keepFaultsOn()
	sim.SetFaultFree(true)
	patience := time.NewTimer(2 * time.Hour)
	defer patience.Stop()
	select {
	case <-sim.work.ledger.whenDrained():
	case <-patience.C:
		sim.cancel()
		fetching.Wait()
		return fmt.Errorf("two hours after the last fault, not all was delivered: %w", sim.work.ledger.missingError())
	case <-sim.ctx.Done():
	}
	close(finish)
	fetching.Wait()
	return nil
}

// waitForRetention waits before a phase until most acknowledged events may be removed. Half of the phases begin while
// sweeps run. If the plan says so, a phase begins exactly when a sweep is about to remove something.
func (sim *simulation) waitForRetention(day int) bool {
	if err := sim.awaitNotices(); err != nil {
		sim.Fail(err)
		return false
	}
	p := sim.newClient("night", uint64(79+day)) //nolint:gosec // there are few
	sim.SetFaultFree(p.rng.IntN(3) > 0)
	long := sim.plan.retention + time.Duration(5+p.rng.IntN(30))*time.Minute
	if p.rng.IntN(2) == 0 {
		long = sim.plan.retention + time.Duration(p.rng.IntN(4)-1)*time.Minute
	}
	var dawn chan struct{}
	if sim.plan.stopsAtSweeps {
		dawn, long = sim.work.coverObserver.sweepStarts, long+time.Hour
		select {
		case <-dawn: // a signal of the last phase
		default:
		}
	}
	if !p.sleepUntil(long, dawn) {
		return false
	}
	sim.SetFaultFree(false)
	sim.work.ledger.expectMore()
	return true
}
