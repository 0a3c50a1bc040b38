//go:build !seeded

package scheduler

import "runtime"

// seedChoices does nothing: the choices of the Go runtime stay random.
func seedChoices(uint64) {}

// settle returns when all other goroutines in the bubble are almost certainly blocked. On one processor, the Go
// scheduler usually resumes a goroutine that yielded only when no other goroutine can run, but sometimes resumes that
// goroutine earlier for fairness. So settle yields several hundred times.
func settle() {
	const often = 300
	for range often {
		runtime.Gosched()
	}
}
