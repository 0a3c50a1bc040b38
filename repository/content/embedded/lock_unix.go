//go:build unix

package embedded

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// lockFile keeps other processes away until it is closed, or this one ends.
func lockFile(root *os.Root, name string) (io.Closer, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, privateFile)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("another account uses this folder, stop that one or choose another folder: %w", err)
	}
	return f, nil
}
