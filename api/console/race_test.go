//go:build race

package console_test

// raced is true with the race detector, with which times say nothing.
const raced = true
