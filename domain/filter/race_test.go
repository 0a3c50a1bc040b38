//go:build race

package filter

// raced says that the race detector is active, which makes tests many times slower.
const raced = true
