package domain

import "time"

// ClockMargin is subtracted from the time of a question: the answer of a store counts as that
// much earlier.
//
// The hub knows that moment by its own clock. Events have the time of the clock of the store,
// which may be behind that of the hub, and some have whole seconds. Without a margin, a change
// shortly after the answer would seem to be earlier, and the answer would undo it. With the
// margin, a change within a minute before the question counts as later than the answer. Its
// event, or the next question, reports it.
const ClockMargin = time.Minute

// timeOfAnswer returns the time of events that follow from what a store answered to a question.
func timeOfAnswer(asked time.Time) time.Time { return asked.Add(-ClockMargin) }
