//go:build unix

package connlimit

import (
	"math"
	"syscall"
)

// FileLimit returns how many file descriptors this process may have. The Go runtime has raised
// this number to the hard limit.
func FileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
