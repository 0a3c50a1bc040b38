package domain

import "time"

// The deliveries of an ordered cursor are made in the order of the stream: in each priority, in
// the order of their numbers. One call is under way at a time, and the next call begins after
// the result of the last call is stored. While a delivery is outstanding, the cursor takes no
// entries: until the delivery has succeeded or is a dead letter, no later delivery is called.
//
// Replayed deliveries are ordered differently. A delivery that was replayed alone neither
// delays others nor waits for them. The deliveries of a replayed range are also made in the
// order of the stream: each waits until the previous one has ended. Fresh deliveries do not wait
// for replayed ones. So a replayed delivery is a retry with the number of its replay, and not in
// Standing.Open.
//
// A consumer may fetch deliveries in a bundle. Before the bundle is stored, no later delivery is
// called: if this node crashed, the next owner would not know the bundle, and would call the
// deliveries of the bundle after the later one.
//
// A cursor may become ordered while it has deliveries. Failed deliveries keep their due times.
// Deliveries that were taken and not called wait until the failed ones have ended.

// isDelivering reports whether a delivery is outstanding that was not replayed.
func (c *Cursor) isDelivering() bool { return len(c.standing.Open) > 0 || c.retries.byReplay[0] > 0 }

// IsStopped reports whether a failed delivery has to end before the cursor takes more entries.
func (c *Cursor) IsStopped() bool { return c.owner.IsOrdered && c.retries.byReplay[0] > 0 }

// hasUnstoredBundle reports whether the cursor has a bundle that is not stored yet.
func (c *Cursor) hasUnstoredBundle() bool {
	return c.standing.Held != nil && c.standing.Held != c.storedBundle
}

// nextInOrder returns the next of the open deliveries to call: the first delivery of the highest
// priority. It returns false while a failed delivery waits for its next attempt.
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
