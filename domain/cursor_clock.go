package domain

import (
	"math"
	"time"
)

// Times are stored by the clock of the owner that has settled a delivery. The clock of another
// owner, or that of the same one after it was set back, may be behind it. Then a time may be
// further ahead than was meant, and is bounded: nothing waits longer than it was to wait when its
// time was stored, counted from the load of the cursor or from when the clock was set back. While
// no clock is set back, this changes nothing.

// setBack is how far a clock has to go back to count as set back.
const setBack = time.Second

// observe notes the time by the clock of the owner, and bounds all times if the clock was set back.
func (c *Cursor) observe(now time.Time) {
	wall := now.Round(0) // a monotonic reading is never set back, and times that were stored have none
	if c.latest.Sub(wall) > setBack {
		c.boundTimes(now)
		clear(c.postponed)
		c.latest = wall
	}
	if wall.After(c.latest) {
		c.latest = wall
	}
}

// boundTimes bounds the due times of the retries, the hold and the breaker.
func (c *Cursor) boundTimes(now time.Time) {
	longest := c.owner.Policy.Longest()
	for _, w := range c.retries.all {
		c.bound(&w.Due, now.Add(min(w.delay(), longest)))
	}
	c.retries.reorder()
	s := &c.standing
	if s.HoldFor > 0 {
		c.bound(&s.Hold, now.Add(s.HoldFor))
	}
	c.bound(&s.BreakerTo, now.Add(c.owner.Policy.BreakFor))
}

func (c *Cursor) bound(t *time.Time, latest time.Time) {
	if !t.After(latest) {
		return
	}
	if t.After(c.ahead) {
		c.ahead = *t
	}
	*t = latest
}

// HasBounded reports whether a time was bounded, in memory alone, that has not passed as it is
// stored: another load would count from then on.
func (c *Cursor) HasBounded(now time.Time) bool { return now.Before(c.ahead) }

// delay returns the time between the last failure of a retry and its next attempt. One that was
// replayed has none.
func (r *Retry) delay() time.Duration {
	switch n := len(r.History); {
	case r.Attempts == 0:
		return 0
	case n == 0:
		return math.MaxInt64 // it is not known
	default:
		last := &r.History[n-1]
		return r.Due.Sub(last.Began.Add(last.Took))
	}
}
