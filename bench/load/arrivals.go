package load

import (
	"math/rand/v2"
	"time"
)

// Arrivals are the times at which operations of a stream are due, counted from the
// start. Each call returns the next time, which is not before the previous one.
type Arrivals func() time.Duration

// Poisson returns the arrivals of many independent callers, on average perSecond per second.
// Earlier arrivals do not affect later ones.
func Poisson(perSecond float64, random *rand.Rand) Arrivals {
	var at time.Duration
	return func() time.Duration {
		at += time.Duration(random.ExpFloat64() / perSecond * float64(time.Second))
		return at
	}
}

// Every returns the arrivals of one periodic caller: at phase, and then after
// each period.
func Every(period, phase time.Duration) Arrivals {
	next := phase - period
	return func() time.Duration {
		next += period
		return next
	}
}
