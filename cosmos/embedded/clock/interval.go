package clock

import "time"

// An Interval limits an action, such as a log message, to one in each period Every. It is not safe for concurrent use.
type Interval struct {
	Every time.Duration
	last  time.Time
}

// TryStart starts an interval at now and returns true. If the last interval has not ended, it returns false.
func (i *Interval) TryStart(now time.Time) bool {
	if !i.last.IsZero() && now.Sub(i.last) < i.Every {
		return false
	}
	i.last = now
	return true
}
