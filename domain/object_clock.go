package domain

import "time"

// ClockMargin is how much earlier than the moment of the question the answer of a store counts.
//
// The hub knows that moment by its own clock. Events have the time of the clock of the store, which may be
// behind that of the hub, and some have whole seconds. Without a margin, what happens shortly after the
// answer would seem to be earlier than it, and the answer would undo it. With the margin, what has changed
// within a minute before the question counts as later than the answer. That is left to its event, or to the
// next question.
const ClockMargin = time.Minute

// timeOfAnswer returns the time of events that follow from what a store answered to a question.
func timeOfAnswer(asked time.Time) time.Time { return asked.Add(-ClockMargin) }
