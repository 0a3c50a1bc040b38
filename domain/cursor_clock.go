package domain

import (
	"math"
	"time"
)

// A stored time comes from the clock of the owner that settled the delivery. If the next owner's
// clock is behind, or if a clock is set back, the delivery would wait longer than intended. So when
// a cursor is loaded, and when the clock is set back, the remaining wait of each delivery is
// limited to the wait that was intended when its time was stored. If all clocks agree, the limit
// has no effect.

// setBack is a tolerance: a clock counts as set back if it has moved back by more than this.
const setBack = time.Second

// observe records the time of the owner's clock. If the clock was set back, it limits all stored
// times.
func (c *Cursor) observe(now time.Time) {
	wall := now.Round(0) // removes the monotonic reading: it is never set back, and stored times have none
	if c.latest.Sub(wall) > setBack {
		c.boundTimes(now)
		clear(c.postponed)
		c.latest = wall
	}
	if wall.After(c.latest) {
		c.latest = wall
	}
}

// boundTimes limits the due times of the retries, the end of the hold and the end of the breaker's
// pause.
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

// HasBounded reports whether a stored time that was limited is still in the future. Times are
// limited only in memory, so a cursor that is loaded again would limit the stored time again, and
// the wait would begin again.
func (c *Cursor) HasBounded(now time.Time) bool { return now.Before(c.ahead) }

// delay returns the time between a retry's last failure and its next attempt. It is 0 if the retry
// has not failed since its replay.
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
