//go:build race

package cosmos

// raced is true with the race detector. Long tests do less work with it: the detector makes them many times
// slower, and each pair of lines needs to run concurrently only once.
const raced = true
