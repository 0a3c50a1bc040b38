package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// partSuffix is the suffix of the temporary file to which CreateFile writes.
const partSuffix = ".part"

// CreateFile creates or replaces a file with the output of write, atomically
// and durably. If CreateFile fails, or the process dies, the previous file
// remains unchanged. The next CreateFile replaces a temporary file that a
// killed process left behind.
func CreateFile(path string, write func(io.Writer) error) (err error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file; name one, or - for stdout", path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return explainFile(path, err)
	}
	defer func() { _ = root.Close() }() // all writes are already synced
	part := name + partSuffix
	lock, err := datafolder.Lock(root, part)
	if errors.Is(err, datafolder.ErrLocked) {
		return fmt.Errorf("%s: another process writes this file; wait for it, or name another file", path)
	}
	if err != nil {
		return explainFile(path, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := writePart(root, part, write); err != nil {
		return errors.Join(explainFile(path, err), root.Remove(part))
	}
	if err := root.Rename(part, name); err != nil {
		return errors.Join(explainFile(path, err), root.Remove(part))
	}
	return datafolder.SyncIn(root, ".")
}

func writePart(root *os.Root, part string, write func(io.Writer) error) error {
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_TRUNC, datafolder.PrivateFile)
	if err != nil {
		return err
	}
	err = f.Chmod(datafolder.PrivateFile)
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// explainFile adds advice to the error about a file that cannot be written.
func explainFile(path string, err error) error {
	what := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = "the disk is full; free some space, or name a file on another disk: "
	case errors.Is(err, syscall.EROFS):
		what = "the file system is read-only; name a file on another: "
	case errors.Is(err, fs.ErrPermission):
		what = "this user may not write there; name another file: "
	case errors.Is(err, fs.ErrNotExist):
		what = "its folder does not exist; make it, or name another file: "
	}
	return fmt.Errorf("%s: %s%w", path, what, err)
}
