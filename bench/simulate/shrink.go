package simulate

import (
	"slices"
	"testing"
	"time"
)

// Shrink drops faults from a simulation that failed, as long as it fails without them:
// first many at a time, in the end one by one. A world without a fault goes on
// otherwise than with it, so what is left is not the only explanation, but a short one.
func Shrink(t *testing.T, o Options, r Result) (Options, Result) {
	t.Helper()
	const patience = 20 * time.Second
	began := time.Now()
	for size := len(r.Happened); size > 0; {
		smaller := false
		for from := 0; from < len(r.Happened) && time.Since(began) < patience; {
			without := o
			without.Drop = append(slices.Clone(o.Drop), r.Happened[from:min(from+size, len(r.Happened))]...)
			if got := Simulate(t, without); got.Err != nil {
				o, r, smaller = without, got, true
				continue // what happens now has the numbers that it has now
			}
			from += size
		}
		if !smaller || size > len(r.Happened) {
			size /= 2
		}
	}
	o.Trace = true
	return o, Simulate(t, o)
}
