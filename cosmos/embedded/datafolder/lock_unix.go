//go:build unix

package datafolder

import (
	"errors"
	"os"
	"syscall"
)

// CanLock tells whether Lock excludes other processes on this system.
const CanLock = true

// tryLock locks the file until it is closed. It fails with ErrLocked if another process has locked the file.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

func releaseLock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
