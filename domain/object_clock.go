package domain

import "time"

// ClockMargin is subtracted from the time of a request to a store: this earlier time counts as the
// time of the response.
//
// The time of the request comes from the clock of the hub. The times of events come from the clock
// of the store, which may be behind, and some are rounded to seconds. Without a margin, a change
// shortly after the response could seem to be earlier, and the response would undo the change. With
// the margin, a change up to a minute before the request counts as later than the response. The
// event of that change, or the next response, reports it.
const ClockMargin = time.Minute

// responseTime returns the time of the events that result from the response of a store.
func responseTime(requested time.Time) time.Time { return requested.Add(-ClockMargin) }
