package embedded

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A folder keeps each blob in a file of its own, whose name is a hash of the
// blob's: no name leads out of it, and none is too long.
//
//	+lock               held while the account is open
//	+unfinished/…       drafts; removed when the account is opened
//	container/+         properties of the container
//	container/5feceb…   a blob: its content, then its properties
type folder struct {
	dir   string
	files fileSystem
	lock  io.Closer
}

const (
	unfinished = "+unfinished"
	properties = "+"
)

// A fileSystem is what a folder asks of the system, and what tests break.
type fileSystem interface {
	create(name string) (*os.File, error)
	write(f *os.File, p []byte) (int, error)
	sync(f *os.File) error
	rename(from, to string) error
	remove(name string) error
	syncFolder(name string) error
}

func openFolder(dir string, files fileSystem) (*folder, error) {
	dir = filepath.Clean(dir)
	if err := makeFolder(dir, files); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "+lock"))
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir, files: files, lock: lock}
	if err := f.clean(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// makeFolder makes dir and what is missing above it, durably.
func makeFolder(dir string, files fileSystem) error {
	parent := filepath.Dir(dir)
	err := os.Mkdir(dir, 0o750)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := makeFolder(parent, files); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o750)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
		}
		return err
	case err != nil:
		return err
	}
	return files.syncFolder(parent)
}

// clean empties the folder of drafts.
func (f *folder) clean() error {
	drafts := filepath.Join(f.dir, unfinished)
	if err := os.RemoveAll(drafts); err != nil {
		return err
	}
	if err := os.Mkdir(drafts, 0o750); err != nil {
		return err
	}
	return f.files.syncFolder(f.dir)
}

func (f *folder) load(found func(string, *version, []*version) error) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		container := entry.Name()
		if !entry.IsDir() || checkContainer(container) != nil {
			continue
		}
		if err := f.loadContainer(container, found); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) loadContainer(container string, found func(string, *version, []*version) error) error {
	dir := filepath.Join(f.dir, container)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var about *version
	blobs := make([]*version, 0, len(entries))
	for _, entry := range entries {
		v, err := readVersion(filepath.Join(dir, entry.Name()))
		switch {
		case err != nil:
			return err
		case entry.Name() == properties:
			about = v
		case entry.Name() != fileOf(v.Name):
			return fmt.Errorf("%s holds the blob %q, whose file has another name: move it away", filepath.Join(dir, entry.Name()), v.Name)
		default:
			blobs = append(blobs, v)
		}
	}
	if about == nil { // a crash came between making the folder and its properties
		if len(blobs) > 0 {
			return fmt.Errorf("%s: the file %q is missing", dir, properties)
		}
		return os.Remove(dir)
	}
	return found(container, about, blobs)
}

// fileOf returns the name of the file of a blob.
func fileOf(blob string) string {
	sum := sha256.Sum256([]byte(blob))
	return hex.EncodeToString(sum[:])
}

func (f *folder) path(container string, v *version) string {
	if v.Name == "" {
		return filepath.Join(f.dir, container, properties)
	}
	return filepath.Join(f.dir, container, fileOf(v.Name))
}

func (f *folder) draft() (draft, error) {
	path := filepath.Join(f.dir, unfinished, strings.ToLower(rand.Text()))
	file, err := f.files.create(path)
	if err != nil {
		return nil, err
	}
	return &fileDraft{files: f.files, path: path, file: file}, nil
}

func (f *folder) makeContainer(container string, about *version) error {
	if err := os.Mkdir(filepath.Join(f.dir, container), 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := f.files.syncFolder(f.dir); err != nil {
		return err // without its properties it is no container, and goes when the account is opened
	}
	d, err := f.draft()
	if err != nil {
		return err
	}
	if err := d.done(); err != nil {
		d.discard()
		return err
	}
	return f.publish(container, about, d)
}

func (f *folder) publish(container string, v *version, d draft) error {
	file := d.(*fileDraft)
	err := file.seal(v)
	if err == nil {
		err = f.files.rename(file.path, f.path(container, v))
	}
	if err != nil {
		d.discard()
		return err
	}
	if err := f.files.syncFolder(filepath.Join(f.dir, container)); err != nil {
		return unsettled{err}
	}
	v.size = file.size
	return nil
}

func (f *folder) open(container string, v *version) (content, error) {
	return os.Open(f.path(container, v))
}

func (f *folder) remove(container string, v *version) error {
	if err := f.files.remove(f.path(container, v)); err != nil {
		return err
	}
	if err := f.files.syncFolder(filepath.Join(f.dir, container)); err != nil {
		return unsettled{err}
	}
	return nil
}

func (f *folder) close() error { return f.lock.Close() }

// A fileDraft is a file among the unfinished. It is open until done.
type fileDraft struct {
	files fileSystem
	path  string
	file  *os.File
	size  int64
}

func (d *fileDraft) Write(p []byte) (int, error) {
	n, err := d.files.write(d.file, p)
	d.size += int64(n)
	return n, err
}

func (d *fileDraft) done() error { return d.file.Close() }

func (d *fileDraft) open() (content, error) { return os.Open(d.path) }

func (d *fileDraft) discard() {
	_ = d.file.Close()         // it may be closed already
	_ = d.files.remove(d.path) // if that fails, opening the account does it
}

// seal appends the properties, and makes the file durable.
func (d *fileDraft) seal(v *version) (err error) {
	tail, err := encodeVersion(v)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(d.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := d.files.write(file, tail); err != nil {
		return err
	}
	return d.files.sync(file)
}

// system is the file system of the machine.
type system struct{}

func (system) create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
}

func (system) write(f *os.File, p []byte) (int, error) { return f.Write(p) }

func (system) sync(f *os.File) error { return f.Sync() }

func (system) rename(from, to string) error { return os.Rename(from, to) }

func (system) remove(name string) error { return os.Remove(name) }

func (system) syncFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
