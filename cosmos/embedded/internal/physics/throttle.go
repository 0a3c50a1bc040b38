// Package physics simulates the limits of a real account: budgets of request units that refill
// with time, and network latency. It does not depend on documents or HTTP, and its caller provides
// the time.
package physics

import (
	"sync"
	"time"
)

// A Budget is the throughput that a physical partition may use.
type Budget struct {
	Key       string // budgets with equal keys are the same budget
	PerSecond int64  // in millionths of a request unit
}

// A Throttle tracks budgets. A budget refills continuously, up to the amount for one second. A request is admitted if
// its budget is above zero, and then spends its actual cost. This may make the budget negative; then later requests
// wait until it is refilled.
type Throttle struct {
	clock func() time.Time

	mu    sync.Mutex
	funds map[string]*budgetState
}

type budgetState struct {
	left int64 // in millionths of a request unit; may be negative
	at   time.Time

	second, spent int64 // a second since 1970, and the amount spent in it
	hour, highest int64 // an hour since 1970, and the highest amount spent in one of its seconds
}

// recordSpent records a charge for Busiest.
func (f *budgetState) recordSpent(now time.Time, charge int64) {
	if second := now.Unix(); second != f.second {
		f.second, f.spent = second, 0
	}
	if hour := now.Unix() / 3600; hour != f.hour {
		f.hour, f.highest = hour, 0
	}
	f.spent += charge
	f.highest = max(f.highest, f.spent)
}

// NewThrottle returns a Throttle in which all budgets are full.
func NewThrottle(clock func() time.Time) *Throttle {
	return &Throttle{clock: clock, funds: map[string]*budgetState{}}
}

// Admit returns how long to wait until all budgets are above zero. 0 means that they are.
func (t *Throttle) Admit(budgets []Budget) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	for _, b := range budgets {
		if left := t.refillBudget(b, now).left; left <= 0 {
			wait = max(wait, time.Duration(-left/max(1, b.PerSecond/1e6)+1)*time.Microsecond)
		}
	}
	return wait
}

// Spend subtracts a charge, divided equally between the budgets.
func (t *Throttle) Spend(budgets []Budget, charge int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	for i, b := range budgets {
		part := charge / int64(len(budgets)-i)
		f := t.refillBudget(b, now)
		f.left -= part
		f.recordSpent(now, part)
		charge -= part
	}
}

// Busiest returns the highest fraction of a budget that was spent in one second of this hour. 1 means the whole budget.
func (t *Throttle) Busiest(budgets []Budget) (part float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	for _, b := range budgets {
		f := t.refillBudget(b, now)
		f.recordSpent(now, 0)
		part = max(part, float64(f.highest)/float64(b.PerSecond))
	}
	return min(part, 1)
}

// Spare spends a charge for background work if the budget is at least half full. It reports whether it did.
func (t *Throttle) Spare(b Budget, charge int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	f := t.refillBudget(b, now)
	if f.left < b.PerSecond/2 {
		return false
	}
	f.left -= charge
	f.recordSpent(now, charge)
	return true
}

// refillBudget refills a budget for the time until now, and returns its state.
func (t *Throttle) refillBudget(b Budget, now time.Time) *budgetState {
	f := t.funds[b.Key]
	if f == nil {
		f = &budgetState{left: b.PerSecond, at: now}
		t.funds[b.Key] = f
		return f
	}
	if passed := now.Sub(f.at).Truncate(time.Microsecond); passed > 0 {
		// add whole seconds and the fraction separately, to avoid an overflow
		seconds := int64(min(passed, 100*time.Hour) / time.Second)
		rest := int64(passed % time.Second / time.Microsecond)
		f.left += b.PerSecond*seconds + b.PerSecond*rest/1e6
		f.at = f.at.Add(passed)
	}
	f.left = min(f.left, b.PerSecond)
	return f
}
