//go:build seeded

package scheduler

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

// seedChoices makes the choices of the Go runtime repeatable; see package seeded.
//
//go:linkname seedChoices
func seedChoices(seed uint64)

// settled reports whether the caller is the only goroutine that can run, on one processor.
//
//go:linkname settled
func settled() bool

// settle returns when all other goroutines in the bubble are blocked.
func settle() {
	for runtime.Gosched(); !settled(); {
		runtime.Gosched()
	}
}
