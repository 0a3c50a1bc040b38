package simulate

import "time"

// verifyEnd checks the final state after all events were delivered.
func (sim *simulation) verifyEnd() error {
	for _, holds := range []func() error{sim.work.ledger.verifyDeliveries, sim.awaitNotices, sim.awaitEmptyOutbox, sim.verifyBus, sim.verifyStore} {
		if err := holds(); err != nil {
			return err
		}
	}
	return nil
}

// keepFaultsOn lets faults continue for some time after the last event was sent, so that faults also affect actors. It
// returns early if all events are delivered.
func (sim *simulation) keepFaultsOn() {
	timer := time.NewTimer(sim.plan.faultTail)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-sim.work.ledger.whenDrained():
	case <-sim.ctx.Done():
	}
}
