//go:build race

package push

// raced is true with the race detector. It makes everything many times slower, and it only needs each
// pair of lines to run concurrently once, so the long tests do less.
const raced = true
