// Package physics is what makes a real account slow: budgets of request units
// that refill with time, and the way that requests have to travel. It knows
// neither documents nor HTTP, and takes its time from its caller.
package physics

import (
	"sync"
	"time"
)

// A Budget names what a physical partition may spend.
type Budget struct {
	Key       string // two budgets with one key are the same
	PerSecond int64  // millionths of a request unit
}

// A Throttle keeps budgets. Each holds at most what one second gives, and
// refills all the time. A request is admitted as long as anything is left and
// then spends what it really cost, which may be more than was left: the
// requests after it wait until that is paid off.
type Throttle struct {
	clock func() time.Time

	mu    sync.Mutex
	funds map[string]*budgetState
}

type budgetState struct {
	left int64 // millionths of a request unit; negative is debt
	at   time.Time

	second, spent int64 // what was spent in this second of 1970
	hour, highest int64 // the most of any second of this hour
}

// recordSpent keeps the most that was spent in a second.
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

// Admit returns 0 if each of the budgets has something left, otherwise how
// long it takes until they have.
func (t *Throttle) Admit(budgets []Budget) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	for _, b := range budgets {
		if left := t.refilled(b, now).left; left <= 0 {
			wait = max(wait, time.Duration(-left/max(1, b.PerSecond/1e6)+1)*time.Microsecond)
		}
	}
	return wait
}

// Spend takes a charge from the budgets, from each an equal part.
func (t *Throttle) Spend(budgets []Budget, charge int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	for i, b := range budgets {
		part := charge / int64(len(budgets)-i)
		f := t.refilled(b, now)
		f.left -= part
		f.recordSpent(now, part)
		charge -= part
	}
}

// Busiest is the largest part of any of the budgets that was spent in one
// second of this hour: 1 is all of it.
func (t *Throttle) Busiest(budgets []Budget) (part float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	for _, b := range budgets {
		f := t.refilled(b, now)
		f.recordSpent(now, 0)
		part = max(part, float64(f.highest)/float64(b.PerSecond))
	}
	return min(part, 1)
}

// Spare takes a charge from the budget if it is at least half full, as work in
// the background does.
func (t *Throttle) Spare(b Budget, charge int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	f := t.refilled(b, now)
	if f.left < b.PerSecond/2 {
		return false
	}
	f.left -= charge
	f.recordSpent(now, charge)
	return true
}

// refilled returns what there is at this time.
func (t *Throttle) refilled(b Budget, now time.Time) *budgetState {
	f := t.funds[b.Key]
	if f == nil {
		f = &budgetState{left: b.PerSecond, at: now}
		t.funds[b.Key] = f
		return f
	}
	if passed := now.Sub(f.at).Truncate(time.Microsecond); passed > 0 {
		// Whole seconds and the rest apart, so that nothing overflows.
		seconds := int64(min(passed, 100*time.Hour) / time.Second)
		rest := int64(passed % time.Second / time.Microsecond)
		f.left += b.PerSecond*seconds + b.PerSecond*rest/1e6
		f.at = f.at.Add(passed)
	}
	f.left = min(f.left, b.PerSecond)
	return f
}
