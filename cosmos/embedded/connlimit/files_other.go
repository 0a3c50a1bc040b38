//go:build !unix

package connlimit

import "math"

// FileLimit returns the maximum number of file descriptors of the process. There is no limit on this system.
func FileLimit() int { return math.MaxInt32 }
