//go:build !seeded

package scheduler

import "runtime"

// seedChoices does nothing: the runtime of Go chooses as it likes.
func seedChoices(uint64) {}

// settle returns when everything else in the bubble is blocked, almost for certain: on
// one processor, the Go scheduler comes back to whoever makes way once it has nothing
// else to run, and now and then before, out of fairness.
func settle() {
	const often = 300
	for range often {
		runtime.Gosched()
	}
}
