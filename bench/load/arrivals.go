package load

import (
	"math/rand/v2"
	"time"
)

// Arrivals are when operations of a kind are due, counted from the start: each call
// returns the next time, which is never before the one that was returned last.
type Arrivals func() time.Duration

// Poisson returns arrivals of many independent callers, perSecond a second on average: what has come
// says nothing about what comes next.
func Poisson(perSecond float64, random *rand.Rand) Arrivals {
	var at time.Duration
	return func() time.Duration {
		at += time.Duration(random.ExpFloat64() / perSecond * float64(time.Second))
		return at
	}
}

// Every are those of one caller with a clock: at phase, and then each period.
func Every(period, phase time.Duration) Arrivals {
	next := phase - period
	return func() time.Duration {
		next += period
		return next
	}
}
