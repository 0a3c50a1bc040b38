//go:build race

package webhook_test

// raced is true with the race detector; then the long test does less.
const raced = true
