package simulate

import "time"

// verifyEnd holds what is left in the end to what is to be left, in a world in which all
// was delivered.
func (sim *simulation) verifyEnd() error {
	for _, holds := range []func() error{sim.work.ledger.verifyDeliveries, sim.awaitNotices, sim.awaitEmptyOutbox, sim.verifyBus, sim.verifyStore} {
		if err := holds(); err != nil {
			return err
		}
	}
	return nil
}

// keepFaultsOn lets the weather last for a while, for those who fetch.
func (sim *simulation) keepFaultsOn() {
	timer := time.NewTimer(sim.plan.faultTail)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-sim.work.ledger.whenDrained():
	case <-sim.ctx.Done():
	}
}
