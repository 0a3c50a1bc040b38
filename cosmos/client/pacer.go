package client

import (
	"context"
	"sync"
	"time"
)

// A pacer limits the request units that background calls of a client spend per second. A throttled
// request of any call of the client means that the account has no spare request units, so the pacer
// halves its rate. Without throttled requests the rate rises again.
type pacer struct {
	limit float64 // maximum rate, in request units per second
	clock func() time.Time

	mu        sync.Mutex
	rate      float64   // current rate, up to limit, in request units per second
	debt      float64   // request units, at the time at, that were spent and are not paid off
	at        time.Time // time of the last update of rate and debt
	throttled time.Time // when the rate was last halved
}

const (
	minRateShare   = 1. / 64     // minimum of the rate, as a fraction of the limit
	rateRecovery   = time.Minute // time in which the rate rises from 0 to the limit
	throttledPause = time.Second // pause of background requests after a throttled request
)

func newPacer(limit float64, clock func() time.Time) *pacer {
	return &pacer{limit: limit, rate: limit, clock: clock}
}

// wait waits until the debt is paid off. It returns false if ctx ends first.
func (p *pacer) wait(ctx context.Context) bool {
	pause := p.takePause()
	return pause <= 0 || Sleep(ctx, pause)
}

// takePause returns the time for which the next request must wait, and sets the debt to zero. So even
// with a stopped clock, each charge delays only one request.
func (p *pacer) takePause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.payOff()
	pause := time.Duration(p.debt / p.rate * float64(time.Second))
	p.debt = 0
	return pause
}

// payOff reduces the debt and raises the rate for the time since the last update, and returns the
// current time.
func (p *pacer) payOff() time.Time {
	now := p.clock()
	if passed := now.Sub(p.at).Seconds(); passed > 0 {
		p.debt = max(p.debt-passed*p.rate, 0)
		p.rate = min(p.rate+p.limit*passed/rateRecovery.Seconds(), p.limit)
	}
	p.at = now
	return now
}

// addCharge adds the charge of a background request to the debt.
func (p *pacer) addCharge(charge float32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.payOff()
	p.debt += float64(charge)
}

// noteThrottled halves the rate, but only once for all requests that are throttled during one pause.
func (p *pacer) noteThrottled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.payOff()
	if since := now.Sub(p.throttled); since >= 0 && since < throttledPause {
		return
	}
	p.throttled = now
	p.rate = max(p.rate/2, p.limit*minRateShare)
	p.debt = max(p.debt, p.rate*throttledPause.Seconds())
}

// batchSize returns the number of operations for a batch if each operation costs price request units: at
// least 1, up to limit. A batch costs up to half a second of the rate, because the pacer cannot delay a
// part of it.
func (p *pacer) batchSize(price float64, limit int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.payOff()
	return max(1, min(limit, int(p.rate/2/price)))
}
