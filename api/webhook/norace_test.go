//go:build !race

package webhook_test

const raced = false
