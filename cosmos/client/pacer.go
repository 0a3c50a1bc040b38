package client

import (
	"context"
	"sync"
	"time"
)

// A pacer limits the request units that background calls of a client spend per second. It halves its
// rate when a request of any call of the client is throttled, because the account then has less to
// spare. Without throttled requests the rate rises again.
type pacer struct {
	limit float64 // request units a second
	clock func() time.Time

	mu        sync.Mutex
	rate      float64   // at most limit
	debt      float64   // request units spent and not paid off yet, at the time at
	at        time.Time // time of the last change of the rate
	throttled time.Time // when the rate was last halved
}

const (
	minRateShare   = 1. / 64     // lower bound of the rate, as a part of the limit
	rateRecovery   = time.Minute // time in which the rate would rise from 0 to the limit
	throttledPause = time.Second // time for which a throttled account gets no background request
)

func newPacer(limit float64, clock func() time.Time) *pacer {
	return &pacer{limit: limit, rate: limit, clock: clock}
}

// wait waits until what was spent before is paid off. It returns false if ctx ends before.
func (p *pacer) wait(ctx context.Context) bool {
	pause := p.takePause()
	return pause <= 0 || Sleep(ctx, pause)
}

// takePause returns how long the next request has to wait, and sets the debt to zero. So a clock that
// stands still delays each request only once.
func (p *pacer) takePause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.payOff()
	pause := time.Duration(p.debt / p.rate * float64(time.Second))
	p.debt = 0
	return pause
}

// payOff reduces the debt by the time that has passed, raises the rate, and returns the time.
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

// noteThrottled halves the rate, once for all requests that are throttled in one pause.
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

// batchSize returns the number of operations of a price for a batch, at least 1. A batch is charged as
// one request, so it must not cost more than may be spent in half a second.
func (p *pacer) batchSize(price float64, limit int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.payOff()
	return max(1, min(limit, int(p.rate/2/price)))
}
