//go:build !race

package push

const raced = false
