//go:build race

package cosmos

// raced reports whether the race detector is enabled. Long tests then do less work: the detector makes
// them many times slower, and finds a race in the first concurrent execution.
const raced = true
