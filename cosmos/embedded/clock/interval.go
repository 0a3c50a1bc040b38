package clock

import "time"

// An Interval limits an action, such as a log entry, to one per period Every. It is not safe
// for concurrent use.
type Interval struct {
	Every time.Duration
	last  time.Time
}

// TryStart returns false while an interval lasts; otherwise it starts one at now and returns
// true.
func (i *Interval) TryStart(now time.Time) bool {
	if !i.last.IsZero() && now.Sub(i.last) < i.Every {
		return false
	}
	i.last = now
	return true
}
