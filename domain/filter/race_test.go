//go:build race

package filter

// raced is set if the race detector is active, which makes tests many times slower.
const raced = true
