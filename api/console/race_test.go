//go:build race

package console_test

// raced reports whether the race detector is enabled, which makes measured times meaningless.
const raced = true
