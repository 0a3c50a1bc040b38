package domain

import "time"

// Postpone notes that the receiver was not called with a delivery after all, because the hub
// could not read the message. Nothing is counted. The delivery waits until a time, and others
// go on; if the cursor is loaded again by another owner, it does not wait.
func (c *Cursor) Postpone(e EntryID, until time.Time) {
	delete(c.calls, e)
	c.postponed[e] = until
	if w := c.retries.all[e]; w != nil && w.index < 0 && !c.standing.Held.Has(e) {
		r := w.Retry
		if r.Due.Before(until) {
			r.Due = until // in memory alone
		}
		c.retries.put(r)
	}
}

func (c *Cursor) isPostponed(e EntryID, now time.Time) bool { return now.Before(c.postponed[e]) }

// EarliestPostponed returns the first time after now until which a delivery is postponed, or
// zero without one.
func (c *Cursor) EarliestPostponed(now time.Time) time.Time {
	var first time.Time
	for _, until := range c.postponed {
		if until.After(now) && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}

// bury makes a dead letter of a delivery whose message is lost. It counts as no attempt.
func (c *Cursor) bury(o Outcome, r *Retry) {
	dead := Retry{Published: o.Published}
	if r != nil {
		dead = *r
	} else {
		dead.Position = c.standing.Open[c.standing.indexOpen(o.Entry)]
	}
	dead.Dead, dead.Due, dead.Reason = true, o.Answer.Ended(), o.Answer.Error
	c.unstored = append(c.unstored, o)
	c.settleCaution(o.Entry)
	c.end(o.Entry, &dead)
	c.standing.Counters.Errored++
}
