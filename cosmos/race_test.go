//go:build race

package cosmos

// raced says that the race detector watches. It makes everything many times
// slower, and it only needs to see every line run side by side with every
// other: so the long tests do less.
const raced = true
