//go:build race

package baselinetest

// Raced says that the race detector watches. It makes everything many times slower, and only needs
// to see every line run side by side with every other.
const Raced = true
