package domain

import "time"

// ClockMargin is subtracted from the time at which a store was asked: the answer counts as that
// much earlier.
//
// The hub takes that time from its own clock. The times of events come from the clock of the
// store, which may be behind, and some are rounded to seconds. Without a margin, a change
// shortly after the answer could seem to be earlier, and the answer would undo it. With the
// margin, a change up to a minute before the hub asked counts as later than the answer. Its
// event, or the next answer, reports it.
const ClockMargin = time.Minute

// timeOfAnswer returns the time of the events that result from the answer of a store.
func timeOfAnswer(asked time.Time) time.Time { return asked.Add(-ClockMargin) }
