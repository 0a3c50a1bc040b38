package clock

import "time"

// An Interval limits an action, such as a log entry, to one per period Every. It is not safe
// for concurrent use.
type Interval struct {
	Every time.Duration
	last  time.Time
}

// TryStart starts a new interval at now and returns true, unless the last interval has not ended. In
// this case it returns false.
func (i *Interval) TryStart(now time.Time) bool {
	if !i.last.IsZero() && now.Sub(i.last) < i.Every {
		return false
	}
	i.last = now
	return true
}
