//go:build !unix

package connlimit

import "math"

// FileLimit returns how many file descriptors this process may have. This system has no limit.
func FileLimit() int { return math.MaxInt32 }
