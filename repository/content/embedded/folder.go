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
	"path"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// A folder keeps each blob in a file of its own, whose name is a hash of the
// blob's: no name leads out of it, and none is too long.
//
//	+lock               held while the account is open
//	+identity           id of the data folder that the account belongs to, if to any
//	+unfinished/…       drafts; removed when the account is opened
//	+held/…             blobs that were deleted during a Hold; removed at its end, and when the account is opened
//	container/+         properties of the container
//	container/5feceb…   a blob: its content, then its properties
type folder struct {
	root    *os.Root
	files   fileSystem
	lock    io.Closer
	remover datafolder.Remover
}

const (
	lockFile   = "+lock"
	unfinished = "+unfinished"
	properties = "+"
)

// A fileSystem is how a folder writes, and what tests break. Names are below the
// folder's root.
type fileSystem interface {
	create(name string) (*os.File, error)
	write(f *os.File, p []byte) (int, error)
	sync(f *os.File) error
	rename(from, to string) error
	remove(name string) error
	syncFolder(name string) error
}

func openFolder(dir string, claim datafolder.Claim, files func(*os.Root) fileSystem) (*folder, error) {
	if err := claim.Make(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	lock, err := datafolder.Lock(root, lockFile)
	if errors.Is(err, datafolder.ErrLocked) {
		err = fmt.Errorf("another account uses this folder, stop that one or choose another folder: %w", err)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	f := &folder{root: root, files: files(root), lock: lock}
	if err := checkFormat(root); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if err := f.clean(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// clean empties the folder of drafts.
func (f *folder) clean() error {
	if err := errors.Join(f.root.RemoveAll(unfinished), datafolder.CleanHeld(f.root)); err != nil {
		return err
	}
	if err := f.root.Mkdir(unfinished, datafolder.PrivateFolder); err != nil {
		return err
	}
	return f.files.syncFolder(".")
}

func (f *folder) load(found func(string, *version, []*version) error) error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
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
	if err := f.closeOthers(container); err != nil {
		return err
	}
	root, err := f.root.OpenRoot(container)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only read
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	var about *version
	blobs := make([]*version, 0, len(entries))
	for _, entry := range entries {
		v, err := readVersion(root, entry.Name())
		switch {
		case err != nil:
			return fmt.Errorf("%s/%w", container, err)
		case entry.Name() == properties:
			about = v
		case entry.Name() != fileOf(v.Name):
			return fmt.Errorf("%s/%s holds the blob %q, whose file has another name: move it away", container, entry.Name(), v.Name)
		default:
			blobs = append(blobs, v)
		}
	}
	if about != nil {
		return found(container, about, blobs)
	}
	if len(blobs) > 0 {
		return fmt.Errorf("%s: the file %q is missing", container, properties)
	}
	return f.root.Remove(container) // a crash came between making it and its properties
}

// closeOthers takes the rights of other users from a folder that an earlier version has
// made. A folder of another user, or on a file system without modes, stays as it is.
func (f *folder) closeOthers(container string) error {
	info, err := f.root.Stat(container)
	if err != nil || info.Mode().Perm()&^datafolder.PrivateFolder == 0 {
		return err
	}
	err = f.root.Chmod(container, datafolder.PrivateFolder)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// fileOf returns the name of the file of a blob.
func fileOf(blob string) string {
	sum := sha256.Sum256([]byte(blob))
	return hex.EncodeToString(sum[:])
}

func pathOf(container string, v *version) string {
	if v.Name == "" {
		return path.Join(container, properties)
	}
	return path.Join(container, fileOf(v.Name))
}

func (f *folder) draft(int64) (draft, error) {
	name := path.Join(unfinished, strings.ToLower(rand.Text()))
	file, err := f.files.create(name)
	if err != nil {
		return nil, err
	}
	return &fileDraft{folder: f, name: name, file: file}, nil
}

func (f *folder) makeContainer(container string, about *version) error {
	if err := f.root.Mkdir(container, datafolder.PrivateFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := f.files.syncFolder("."); err != nil {
		return err // without its properties it is no container, and goes when the account is opened
	}
	d, err := f.draft(0)
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
		err = f.files.rename(file.name, pathOf(container, v))
	}
	if err != nil {
		d.discard()
		return err
	}
	if err := f.files.syncFolder(container); err != nil {
		return unsettled{err}
	}
	v.size = file.size
	return nil
}

func (f *folder) open(container string, v *version) (content, error) {
	return f.root.Open(pathOf(container, v))
}

func (f *folder) remove(container string, v *version) error {
	if err := f.remover.Remove(pathOf(container, v), f.files.remove); err != nil {
		return err
	}
	if err := f.files.syncFolder(container); err != nil {
		return unsettled{err}
	}
	return nil
}

func (f *folder) close() error { return errors.Join(f.root.Close(), f.lock.Close()) }

// A fileDraft is a file among the unfinished. It is open until done.
type fileDraft struct {
	folder *folder
	name   string
	file   *os.File
	size   int64
}

func (d *fileDraft) Write(p []byte) (int, error) {
	n, err := d.folder.files.write(d.file, p)
	d.size += int64(n)
	return n, err
}

func (d *fileDraft) done() error { return d.file.Close() }

func (d *fileDraft) open() (content, error) { return d.folder.root.Open(d.name) }

func (d *fileDraft) discard() {
	_ = d.file.Close()                // it may be closed already
	_ = d.folder.files.remove(d.name) // if that fails, opening the account does it
}

// seal appends the properties, and makes the file durable.
func (d *fileDraft) seal(v *version) (err error) {
	tail, err := encodeVersion(v)
	if err != nil {
		return err
	}
	file, err := d.folder.root.OpenFile(d.name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := d.folder.files.write(file, tail); err != nil {
		return err
	}
	return d.folder.files.sync(file)
}

// system is the file system of the machine.
type system struct{ root *os.Root }

func onSystem(root *os.Root) fileSystem { return system{root} }

func (s system) create(name string) (*os.File, error) {
	return s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datafolder.PrivateFile)
}

func (system) write(f *os.File, p []byte) (int, error) { return f.Write(p) }

func (system) sync(f *os.File) error { return f.Sync() }

func (s system) rename(from, to string) error { return s.root.Rename(from, to) }

func (s system) remove(name string) error { return s.root.Remove(name) }

func (s system) syncFolder(name string) error { return datafolder.SyncIn(s.root, name) }
