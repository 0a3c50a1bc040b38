package embedded

import "time"

// A logInterval limits an entry of the log to one in a minute.
type logInterval struct{ last time.Time }

// isDue reports whether an entry may be written, and then starts the interval.
func (l *logInterval) isDue(now time.Time) bool {
	if !l.last.IsZero() && now.Sub(l.last) < time.Minute {
		return false
	}
	l.last = now
	return true
}
