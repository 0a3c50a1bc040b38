package domain

import "time"

// An ordered cursor makes its deliveries in the order of the stream: in each priority, in the order
// of the numbers. It makes one call at a time, and begins a call only after the result of the
// previous call is stored. While a delivery is outstanding, the cursor takes no entries: no later
// delivery is called until this one has succeeded or is a dead letter.
//
// Replayed deliveries are ordered differently. If a single delivery is replayed, it neither delays
// other deliveries nor waits for them. If a range is replayed, its deliveries are made in the order
// of the stream: each waits until the previous one has ended. Fresh deliveries do not wait for
// replayed ones. So a replayed delivery is stored as a retry with the number of its replay, and is
// not in Standing.Open.
//
// A consumer may fetch deliveries in a bundle. No later delivery is called before the bundle is
// stored: if this node crashed, the next owner would not know the bundle, and would call the
// bundle's deliveries after the later one.
//
// A cursor may become ordered while deliveries are outstanding. Failed deliveries keep their due
// times. Deliveries that were taken but not called wait until the failed ones have ended.

// isDelivering reports whether a delivery is outstanding that is not a replay.
func (c *Cursor) isDelivering() bool { return len(c.standing.Open) > 0 || c.retries.byReplay[0] > 0 }

// IsStopped reports whether a failed delivery has to end before the cursor takes more entries.
func (c *Cursor) IsStopped() bool { return c.owner.IsOrdered && c.retries.byReplay[0] > 0 }

// hasUnstoredBundle reports whether the cursor has a bundle that is not stored yet.
func (c *Cursor) hasUnstoredBundle() bool {
	return c.standing.Held != nil && c.standing.Held != c.storedBundle
}

// nextInOrder returns the next open delivery to call: the first delivery of the highest priority.
// It returns false while a failed delivery waits for its next attempt.
func (c *Cursor) nextInOrder(now time.Time) (Position, bool) {
	if len(c.standing.Open) == 0 || c.IsStopped() {
		return Position{}, false
	}
	next := c.standing.Open[0]
	for _, p := range c.standing.Open {
		if p.Priority > next.Priority || p.Priority == next.Priority && p.Number < next.Number {
			next = p
		}
	}
	return next, c.canCallOpen(next.EntryID, now)
}
