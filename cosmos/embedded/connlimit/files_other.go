//go:build !unix

package connlimit

import "math"

// FileLimit returns the maximum number of file descriptors of the process. This system has no limit.
func FileLimit() int { return math.MaxInt32 }
