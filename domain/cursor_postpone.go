package domain

import "time"

// Postpone records that the receiver was not called, because the hub could not read the message. It
// counts no attempt. The delivery waits until the given time, and other deliveries continue. The
// wait is not stored, so it ends when another owner loads the cursor.
func (c *Cursor) Postpone(e EntryID, until time.Time) {
	delete(c.calls, e)
	c.postponed[e] = until
	if w := c.retries.all[e]; w != nil && w.index < 0 && !c.standing.Held.Has(e) {
		r := w.Retry
		if r.Due.Before(until) {
			r.Due = until // the stored due time does not change
		}
		c.retries.put(r)
	}
}

func (c *Cursor) isPostponed(e EntryID, now time.Time) bool { return now.Before(c.postponed[e]) }

// EarliestPostponed returns the earliest time at which a postponed delivery may be called again. It
// returns the zero time if no delivery is postponed beyond now.
func (c *Cursor) EarliestPostponed(now time.Time) time.Time {
	var first time.Time
	for _, until := range c.postponed {
		if until.After(now) && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}

// endLost makes a delivery a dead letter because its message is lost. It counts no attempt.
func (c *Cursor) endLost(o Outcome, r *Retry) {
	dead := Retry{Published: o.Published}
	if r != nil {
		dead = *r
	} else {
		dead.Position = c.standing.Open[c.standing.indexOpen(o.Entry)]
	}
	dead.Dead, dead.Due, dead.Reason = true, o.Answer.Ended(), o.Answer.Error
	c.unstored = append(c.unstored, o)
	c.settleCaution(o.Entry)
	c.endDelivery(o.Entry, &dead)
	c.standing.Counters.Errored++
}
