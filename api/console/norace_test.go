//go:build !race

package console_test

const raced = false
