//go:build race

package embedded_test

// raced is true with the race detector. Tests with one client are shorter then.
const raced = true
