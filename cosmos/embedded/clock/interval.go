package clock

import "time"

// An Interval limits an action, such as an entry of a log, to one in Every. It belongs to
// one goroutine, or to the lock of its owner.
type Interval struct {
	Every time.Duration
	last  time.Time
}

// TryStart starts an interval and returns true, unless one lasts at now.
func (i *Interval) TryStart(now time.Time) bool {
	if !i.last.IsZero() && now.Sub(i.last) < i.Every {
		return false
	}
	i.last = now
	return true
}
