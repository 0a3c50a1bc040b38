//go:build race

package embedded_test

// raced is true with the race detector. Tests with a single client are then shorter.
const raced = true
