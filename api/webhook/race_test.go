//go:build race

package webhook_test

// raced says that the race detector watches, so the long test does less.
const raced = true
