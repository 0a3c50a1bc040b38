package domain

import "time"

// A Backlog is how much waits for a recipient, and since when.
//
// It may lag behind other nodes: what they have saved in the last moments may be
// missing.
type Backlog struct {
	Events int64

	// Oldest is when the oldest of the Events was saved, or an earlier moment,
	// though not one before the recipient's first Save: what waits is never older
	// than a Backlog says. It is zero if nothing waits, or if it is not known.
	Oldest time.Time
}

// Plus returns what two backlogs are together.
func (b Backlog) Plus(c Backlog) Backlog {
	switch {
	case b.Events == 0:
		return c
	case c.Events == 0:
		return b
	}
	sum := Backlog{Events: b.Events + c.Events, Oldest: b.Oldest}
	if c.Oldest.Before(b.Oldest) {
		sum.Oldest = c.Oldest // zero, not known, comes before everything
	}
	return sum
}
