//go:build race

package baselinetest

// Raced reports whether the race detector is on. Tests then use a smaller load, because the
// detector makes everything many times slower.
const Raced = true
