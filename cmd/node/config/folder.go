package config

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// FolderError adds advice to the error about a data folder that cannot be used.
func FolderError(dir string, err error) error {
	what := "look at its owner, its mode and its disk, or choose another with --data"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = "the disk is full; free some space, or choose another folder with --data"
	case errors.Is(err, syscall.EROFS):
		what = "the file system is read-only; make it writable, or choose another folder with --data"
	case errors.Is(err, fs.ErrPermission):
		what = "this user may not write there; change its owner or its mode, or choose another folder with --data"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		what = "it is not a folder, or not in one; choose another with --data"
	}
	return fmt.Errorf("data folder %s: %s (%w)", dir, what, err)
}
