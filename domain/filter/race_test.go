//go:build race

package filter

// raced says that the race detector watches, which makes everything many times slower.
const raced = true
