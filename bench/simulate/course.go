package simulate

import (
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// course is what the parties do: they send and fetch, some of them sleep for a night,
// longer than what was acknowledged is kept, and do so again.
func (w *world) course() error {
	senders, err := w.senders()
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range senders {
			s.close()
		}
	}()
	var makers sync.WaitGroup
	over := make(chan struct{})
	if w.plan.requested != (domain.Origin{}) {
		m := &maker{party: w.newParty("maker", 50), more: newDice(w.o.Seed, 51)}
		makers.Go(func() { m.works(over) })
	}
	defer makers.Wait()
	defer close(over)
	actors := w.actors()
	for day := range w.plan.days {
		if day > 0 && !w.night(day) {
			return nil
		}
		if err := w.day(day, senders, actors); err != nil || w.ctx.Err() != nil {
			return err
		}
		for _, s := range senders { // what was delivered is not sent again days later
			s.sent = nil
		}
	}
	return w.ends()
}

// day has all parties act until all that was sent is delivered.
func (w *world) day(day int, senders []*sender, actors []*actor) error {
	var fetching, sending sync.WaitGroup
	finish := make(chan struct{})
	for _, a := range actors {
		fetching.Go(func() { a.act(finish) })
	}
	if w.plan.operators {
		o := &operator{w.newParty("operator", uint64(70+day))} //nolint:gosec // there are few
		fetching.Go(func() { o.acts(finish) })
	}
	if w.plan.crowds {
		c := &crowd{w.newParty("crowd", uint64(94+day))} //nolint:gosec // there are few
		fetching.Go(func() { c.acts(finish) })
	}
	if w.issuer != nil && day == 0 {
		x := w.newTokenIntruder()
		fetching.Go(func() { x.acts(finish) })
	}
	if w.plan.deletes {
		x, err := w.newDeleter(day)
		if err != nil {
			return err
		}
		fetching.Go(func() { x.acts(finish) })
	}
	if w.plan.keeper && day == 0 {
		k, err := w.newKeeper()
		if err != nil {
			return err
		}
		fetching.Go(func() { k.acts(finish) })
	}
	for _, s := range senders {
		sending.Go(s.send)
	}
	sending.Wait()
	w.goesOn()
	w.clears(true)
	patience := time.NewTimer(2 * time.Hour)
	defer patience.Stop()
	select {
	case <-w.ledger.drained():
	case <-patience.C:
		w.cancel()
		fetching.Wait()
		return fmt.Errorf("two hours after the last fault, not all was delivered: %w", w.ledger.missing())
	case <-w.ctx.Done():
	}
	close(finish)
	fetching.Wait()
	return nil
}

// clears has the weather clear up, or not.
func (w *world) clears(up bool) {
	w.scheduler.mu.Lock()
	if w.calm = up; !up {
		w.weather.lasts += w.steps
	}
	w.scheduler.mu.Unlock()
	w.rouse()
}

// night, before a day, lets so much time pass that all that was acknowledged may go.
// Every other morning comes while the sweeps are about it, and a dawn when one begins.
func (w *world) night(day int) bool {
	if err := w.noticesArrive(); err != nil {
		w.fail(err)
		return false
	}
	p := w.newParty("night", uint64(79+day)) //nolint:gosec // there are few
	w.clears(p.d.n(3) > 0)
	long := w.plan.retention + time.Duration(5+p.d.n(30))*time.Minute
	if p.d.n(2) == 0 {
		long = w.plan.retention + time.Duration(p.d.n(4)-1)*time.Minute
	}
	var dawn chan struct{}
	if w.plan.dawns {
		dawn, long = w.witness.letsGo, long+time.Hour
		select {
		case <-dawn: // of a day that is over
		default:
		}
	}
	if !p.sleeps(long, dawn) {
		return false
	}
	w.clears(false)
	w.ledger.opens()
	return true
}
