//go:build race

package push

// raced reports whether the race detector is enabled. Long tests then try fewer cases: the detector makes
// them many times slower, and finds a race in the first concurrent execution.
const raced = true
