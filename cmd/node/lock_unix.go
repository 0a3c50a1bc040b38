//go:build unix

package node

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks the file as long as it is open. The lock dies with the process.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
