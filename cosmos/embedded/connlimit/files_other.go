//go:build !unix

package connlimit

import "math"

// FileLimit returns how many file descriptors this process may have: on this system
// there is no limit.
func FileLimit() int { return math.MaxInt32 }
