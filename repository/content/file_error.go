package content

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/messagehub/messagehub/domain"
)

// classifyFileError adds a kind and advice to an error of the file system. No error is Uncertain, because
// the file system fails only before an object is visible.
func classifyFileError(err error) error {
	switch {
	case err == nil:
		return nil
	case isAny(err, syscall.ENOSPC, syscall.EDQUOT):
		return domain.Errorf(domain.Unavailable, "the disk is full or its quota is used up; free some space: %w", err)
	case isAny(err, syscall.EROFS):
		return domain.Errorf(domain.Unavailable, "the file system is read-only; make it writable or use another folder: %w", err)
	case isAny(err, fs.ErrPermission):
		return domain.Errorf(domain.Unavailable, "the user of this process has no permission for the folder; change its owner or its mode: %w", err)
	case isAny(err, syscall.EMFILE, syscall.ENFILE):
		return domain.Errorf(domain.Busy, "too many files are open: %w", err)
	}
	return err
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
