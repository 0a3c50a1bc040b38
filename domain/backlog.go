package domain

import "time"

// A Backlog counts the events that wait for a recipient, and states when the oldest one was saved.
// It may lack events that other nodes have just saved.
type Backlog struct {
	Events int64

	// Oldest is the time at which the oldest event was saved, or an earlier time, but not before
	// the recipient's first Save. It is zero if no event waits, or if the time is unknown.
	Oldest time.Time
}

// Plus returns the sum of two backlogs.
func (b Backlog) Plus(c Backlog) Backlog {
	switch {
	case b.Events == 0:
		return c
	case c.Events == 0:
		return b
	}
	sum := Backlog{Events: b.Events + c.Events, Oldest: b.Oldest}
	if c.Oldest.Before(b.Oldest) {
		sum.Oldest = c.Oldest // the sum's time is unknown (zero) if either time is unknown
	}
	return sum
}
