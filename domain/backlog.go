package domain

import "time"

// A Backlog is the amount of events that wait for a recipient, and the time since which they
// wait.
//
// It may lag behind other nodes: events that they have just saved may be missing.
type Backlog struct {
	Events int64

	// Oldest is at or before the time at which the oldest of the Events was saved, and not
	// before the recipient's first Save. It is zero if nothing waits, or if the time is not
	// known.
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
		sum.Oldest = c.Oldest // zero, which means not known, wins
	}
	return sum
}
