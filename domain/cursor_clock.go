package domain

import (
	"math"
	"time"
)

// A stored time was read from the clock of the owner that settled the delivery. The clock of the
// next owner may be behind that clock, and an owner's clock may be set back. A delivery would
// then wait longer than intended. So when a cursor is loaded, and when the clock is set back, the
// remaining wait of each delivery is limited to the wait that was intended when its time was
// stored. While clocks agree, the limit has no effect.

// setBack is the minimum difference by which a clock counts as set back.
const setBack = time.Second

// observe notes the time by the clock of the owner, and bounds all times if the clock was set back.
func (c *Cursor) observe(now time.Time) {
	wall := now.Round(0) // without the monotonic reading, which is never set back and which stored times lack
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

// HasBounded reports whether a bounded time, as it is stored, is still ahead. Times are bounded
// in memory only, so another load of the cursor would bound it again, counted from that load.
func (c *Cursor) HasBounded(now time.Time) bool { return now.Before(c.ahead) }

// delay returns the time between the last failure of a retry and its next attempt. It is 0 for
// a retry that was replayed.
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
