//go:build race

package embedded_test

// raced is true with the race detector, under which tests with a single client are shorter.
const raced = true
