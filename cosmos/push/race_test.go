//go:build race

package push

// raced is true with the race detector. The detector makes tests many times slower, and finds a race
// when two lines run concurrently once. So the long tests try fewer cases.
const raced = true
