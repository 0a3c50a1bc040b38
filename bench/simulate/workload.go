package simulate

import (
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
)

// A workload holds the state of the clients and the checkers of their results.
type workload struct {
	ledger        *referenceLedger
	checkers      map[containers.Checker]invariantChecker
	coverObserver *coverageObserver
	poison        *poisonMessages
	outbox        noticeOutbox
	mailboxes     *mailboxHistories
	isDone        bool // true when all clients have finished
}

// runWorkload runs all clients in one or more phases. Between two phases it waits for longer than the retention.
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
	var domains sync.WaitGroup
	done := make(chan struct{})
	if sim.plan.requestedOrigin != (domain.Origin{}) {
		m := &contentDomain{baseClient: sim.newClient("maker", 50), laterRNG: random.New(sim.options.Seed, 51)}
		domains.Go(func() { m.runUntil(done) })
	}
	defer domains.Wait()
	defer close(done)
	actors := sim.newActors()
	for phase := range sim.plan.phases {
		if phase > 0 && !sim.waitForRetention(phase) {
			return nil
		}
		if err := sim.runPhase(phase, senders, actors); err != nil || sim.ctx.Err() != nil {
			return err
		}
		for _, s := range senders { // senders do not repeat these events in later phases
			s.sent = nil
		}
	}
	return sim.verifyEnd()
}

// runPhase runs all clients until all events are delivered.
func (sim *simulation) runPhase(phase int, senders []*batchSender, actors []*actorClient) error {
	var fetching, sending sync.WaitGroup
	finish := make(chan struct{})
	for _, a := range actors {
		fetching.Go(func() { a.runUntil(finish) })
	}
	if sim.plan.hasOperators {
		o := &operator{sim.newClient("operator", uint64(70+phase))} //nolint:gosec // there are few
		fetching.Go(func() { o.runUntil(finish) })
	}
	if sim.plan.hasLoadBursts {
		c := &loadBurst{sim.newClient("crowd", uint64(94+phase))} //nolint:gosec // there are few
		fetching.Go(func() { c.runUntil(finish) })
	}
	if sim.env.issuer != nil && phase == 0 {
		x := sim.newTokenIntruder()
		fetching.Go(func() { x.runUntil(finish) })
	}
	if sim.plan.deletesContent {
		x, err := sim.newContentDeleter(phase)
		if err != nil {
			return err
		}
		fetching.Go(func() { x.runUntil(finish) })
	}
	if sim.plan.misconfiguresBus && phase == 0 {
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
		return fmt.Errorf("two hours after the last fault, not all events were delivered: %w", sim.work.ledger.missingError())
	case <-sim.ctx.Done():
	}
	close(finish)
	fetching.Wait()
	return nil
}

// waitForRetention waits before a phase until most acknowledged events may be removed. Half of the phases begin while
// sweeps run. If the plan has stopsAtSweeps, a phase begins when a sweep is about to remove documents.
func (sim *simulation) waitForRetention(phase int) bool {
	if err := sim.awaitNotices(); err != nil {
		sim.Fail(err)
		return false
	}
	p := sim.newClient("night", uint64(79+phase)) //nolint:gosec // there are few
	sim.SetFaultFree(p.rng.IntN(3) > 0)
	duration := sim.plan.retention + time.Duration(5+p.rng.IntN(30))*time.Minute
	if p.rng.IntN(2) == 0 {
		duration = sim.plan.retention + time.Duration(p.rng.IntN(4)-1)*time.Minute
	}
	var sweepStart chan struct{}
	if sim.plan.stopsAtSweeps {
		sweepStart, duration = sim.work.coverObserver.sweepStarts, duration+time.Hour
		select {
		case <-sweepStart: // discards a signal from the previous phase
		default:
		}
	}
	if !p.sleepUntil(duration, sweepStart) {
		return false
	}
	sim.SetFaultFree(false)
	sim.work.ledger.expectMore()
	return true
}
