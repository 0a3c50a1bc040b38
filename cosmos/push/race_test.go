//go:build race

package push

// raced is true with the race detector. The detector makes tests many times slower, and needs only one
// concurrent execution of two lines to find their race. So the long tests try fewer cases.
const raced = true
