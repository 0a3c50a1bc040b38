// Package datafolder creates the folders in which engines store their data, durably, so that the
// folders survive a power failure, and locks them, so that one process uses them at a time.
//
// A new folder or file is durable once two things are synced: its content, and the folder that
// holds its name. [Make] and [Sync] sync the folder that holds the name.
package datafolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The modes of an engine's files and folders: only the user of the process may read and write
// them.
const (
	PrivateFile   fs.FileMode = 0o600
	PrivateFolder fs.FileMode = 0o700
)

// ErrLocked reports that another process holds a lock.
var ErrLocked = errors.New("another process has locked the file")

// Make creates dir and its missing parents durably. It is [os.MkdirAll] with mode PrivateFolder, and syncs every folder
// in which it creates a name.
func Make(dir string) error { return MakeOn(dir, Sync) }

// MakeOn is Make with sync in place of [Sync].
func MakeOn(dir string, sync func(dir string) error) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil {
		return requireFolder(dir, info)
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeOn(parent, sync); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, PrivateFolder); err != nil {
		info, statErr := os.Stat(dir)
		if !errors.Is(err, fs.ErrExist) || statErr != nil {
			return err
		}
		return requireFolder(dir, info) // another process created the folder first
	}
	return sync(parent)
}

func requireFolder(dir string, info fs.FileInfo) error {
	if !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return nil
}

// Sync makes new and changed file names in a folder durable.
func Sync(dir string) error { return syncFile(os.Open(dir)) }

// SyncIn is Sync for a folder below root.
func SyncIn(root *os.Root, dir string) error { return syncFile(root.Open(dir)) }

func syncFile(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// A HeldLock is a file that this process has locked.
type HeldLock struct{ file *os.File }

// Close releases the lock and closes the file. Closing the file would not suffice: a child process that is being
// started inherits the file for an instant, and with it the lock.
func (l *HeldLock) Close() error { return errors.Join(releaseLock(l.file), l.file.Close()) }

// Lock opens or creates a file in root, and locks it until the HeldLock is closed or the process dies. It fails with
// ErrLocked if another process has locked the file. It does not follow links. On systems other than Unix, it does not
// lock, so the operator must ensure that only one process uses the folder.
func Lock(root *os.Root, name string) (*HeldLock, error) {
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a link, or no file; remove it", name)
	}
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, PrivateFile)
	if err != nil {
		return nil, err
	}
	if err := tryLock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &HeldLock{file}, nil
}
