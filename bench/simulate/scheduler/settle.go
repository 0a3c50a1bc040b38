//go:build !seeded

package scheduler

import "runtime"

// seedChoices does nothing: the choices of the Go runtime stay random.
func seedChoices(uint64) {}

// settle returns when everything else in the bubble is blocked, almost certainly: on one processor, the Go scheduler
// returns to a goroutine that yields once nothing else can run, and sometimes earlier for fairness.
func settle() {
	const often = 300
	for range often {
		runtime.Gosched()
	}
}
