//go:build race

package console_test

// raced is true with the race detector, which makes measured times meaningless.
const raced = true
