//go:build !race

package baselinetest

// Raced says that the race detector watches.
const Raced = false
