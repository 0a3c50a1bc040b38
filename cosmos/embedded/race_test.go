//go:build race

package embedded_test

// raced says that the race detector watches. Tests with one client do less under it.
const raced = true
