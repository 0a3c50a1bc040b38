//go:build unix

package connlimit

import (
	"math"
	"syscall"
)

// FileLimit returns the maximum number of file descriptors of the process, which is the hard limit, because the Go
// runtime raises the soft limit.
func FileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
