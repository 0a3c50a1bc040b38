package domain

import "time"

// The deliveries of an ordered cursor are made in the order of the stream: in each priority, in
// the order of their numbers. One call is under way at a time, and the next one begins after
// the result of the last one is stored. Nothing is taken while a delivery is outstanding: until
// that has succeeded, or is a dead letter, no later delivery is called.
//
// Replayed deliveries are ordered differently. A delivery that was replayed alone neither
// delays others nor waits for them. The deliveries of a replayed range are also made in the
// order of the stream: each waits until the one before it has ended. Fresh deliveries do not
// wait for them. So each is a retry with the number of the replay, and not in Standing.Open.
//
// A consumer may fetch deliveries in a bundle. Once the bundle is stored, the deliveries after
// it are made. Until then nothing is called: if this node crashed, the next owner would not
// know of the bundle and would call with its deliveries later.
//
// A cursor may become ordered while it has deliveries. Those that have failed keep their times, and
// those that were taken and not called wait until the others have ended.

// isDelivering reports whether a delivery is outstanding, other than those that were replayed.
func (c *Cursor) isDelivering() bool { return len(c.standing.Open) > 0 || c.retries.byReplay[0] > 0 }

// IsStopped reports whether a failed delivery has to end before the cursor takes more entries.
func (c *Cursor) IsStopped() bool { return c.owner.IsOrdered && c.retries.byReplay[0] > 0 }

// isHandingOut reports whether the cursor has a bundle that is not stored yet.
func (c *Cursor) isHandingOut() bool {
	return c.standing.Held != nil && c.standing.Held != c.storedBundle
}

// nextInOrder returns the next delivery to call among those that were taken: the first one of
// the highest priority. It returns false while a failed delivery waits for its next attempt.
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
	return next, c.mayCallOpen(next.EntryID, now)
}
