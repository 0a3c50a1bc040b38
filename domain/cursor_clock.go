package domain

import (
	"math"
	"time"
)

// A stored time comes from the clock of the owner that settled the delivery. If the clock of the
// next owner is behind that clock, or if an owner's clock is set back, the delivery would wait
// longer than intended. So when a cursor is loaded, and when the clock is set back, the remaining
// wait of each delivery is limited to the wait that was intended when its time was stored. While
// clocks agree, the limit has no effect.

// setBack is the tolerance: a clock counts as set back if it has moved back by more than this.
const setBack = time.Second

// observe records the time of the owner's clock, and bounds all stored times if the clock was set
// back.
func (c *Cursor) observe(now time.Time) {
	wall := now.Round(0) // drops the monotonic reading, which is never set back and which stored times lack
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

// HasBounded reports whether the stored value of a bounded time is still in the future. Times are
// bounded only in memory, so another load of the cursor would bound the stored value again,
// counted from that load.
func (c *Cursor) HasBounded(now time.Time) bool { return now.Before(c.ahead) }

// delay returns the time between the last failure of a retry and its next attempt. It is 0 if
// the retry has not failed since its replay.
func (r *Retry) delay() time.Duration {
	switch n := len(r.History); {
	case r.Attempts == 0:
		return 0
	case n == 0:
		return math.MaxInt64 // the time of the last failure is unknown
	default:
		last := &r.History[n-1]
		return r.Due.Sub(last.Began.Add(last.Took))
	}
}
