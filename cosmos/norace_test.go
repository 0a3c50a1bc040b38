//go:build !race

package cosmos

const raced = false
