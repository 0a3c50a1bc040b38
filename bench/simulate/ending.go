package simulate

import "time"

// ends holds what is left in the end to what is to be left, in a world in which all
// was delivered.
func (w *world) ends() error {
	for _, holds := range []func() error{w.ledger.check, w.noticesArrive, w.endsOnTheBus, w.endsWhole} {
		if err := holds(); err != nil {
			return err
		}
	}
	return nil
}

// goesOn lets the weather last for a while, for those who fetch.
func (w *world) goesOn() {
	timer := time.NewTimer(w.plan.tail)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ledger.drained():
	case <-w.ctx.Done():
	}
}
