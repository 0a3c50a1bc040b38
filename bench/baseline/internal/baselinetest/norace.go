//go:build !race

package baselinetest

// Raced reports whether the race detector is on.
const Raced = false
