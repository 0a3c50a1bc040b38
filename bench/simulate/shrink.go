package simulate

import (
	"slices"
	"testing"
	"time"
)

// Shrink removes faults from a failed simulation as long as the simulation still fails: first many at a time, finally
// one by one. After a fault is removed, the simulation continues differently. So the remaining faults are a short
// explanation of the failure, but other explanations may exist.
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
				continue // the last run determines the numbers of the remaining faults
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
