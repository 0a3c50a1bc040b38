package domain

import "time"

// ClockMargin is subtracted from the time of a request to a store. The result counts as the time of
// the store's response.
//
// The hub's clock determines the time of the request. The store's clock, which may be behind,
// determines the times of events, and some are rounded to seconds. Without a margin, a change
// shortly after the response could seem to be earlier, and the response would undo the change. With
// the margin, a change up to a minute before the request counts as later than the response. The
// event of that change, or the next response, reports it.
const ClockMargin = time.Minute

// responseTime returns the time at which a store's response to a request counts; see ClockMargin.
func responseTime(requested time.Time) time.Time { return requested.Add(-ClockMargin) }
