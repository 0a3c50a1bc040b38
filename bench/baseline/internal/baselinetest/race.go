//go:build race

package baselinetest

// Raced reports whether the race detector is on. The detector makes everything many times slower,
// and a small load is enough for it.
const Raced = true
