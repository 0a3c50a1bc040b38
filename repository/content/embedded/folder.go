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

// A folderStore keeps each blob in a file, whose name is a hash of the blob's name. So no name refers to
// a path outside of the folder, and no name is too long.
//
//	+lock               held while the account is open
//	+identity           id of the data folder to which the account belongs; missing if it belongs to no data folder
//	+unfinished/…       drafts; removed when the account is opened
//	+held/…             blobs that were deleted during a hold; removed at the end of the hold, and when the account is opened
//	+                   properties of the account; missing until a client sets them
//	container/+         properties of the container
//	container/5feceb…   a blob: its content, then its properties
type folderStore struct {
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

// A fileSystem contains the write operations of a folderStore, so that tests can inject errors. Names are relative to
// the root of the folder.
type fileSystem interface {
	createFile(name string) (*os.File, error)
	writeFile(f *os.File, p []byte) (int, error)
	syncFile(f *os.File) error
	renameFile(from, to string) error
	removeFile(name string) error
	syncFolder(name string) error
}

func openFolder(dir string, claim datafolder.Claim, files func(*os.Root) fileSystem) (*folderStore, error) {
	if err := claim.Make(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	lock, err := datafolder.Lock(root, lockFile)
	if errors.Is(err, datafolder.ErrLocked) {
		err = fmt.Errorf("another account uses this folder; stop that account or choose another folder: %w", err)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	f := &folderStore{root: root, files: files(root), lock: lock}
	if err := checkFormat(root); err != nil {
		return nil, errors.Join(err, f.closeStore())
	}
	if err := f.removeDrafts(); err != nil {
		return nil, errors.Join(err, f.closeStore())
	}
	return f, nil
}

// removeDrafts removes all drafts and retained files, and creates an empty folder for drafts.
func (f *folderStore) removeDrafts() error {
	if err := errors.Join(f.root.RemoveAll(unfinished), datafolder.CleanHeld(f.root)); err != nil {
		return err
	}
	if err := f.root.Mkdir(unfinished, datafolder.PrivateFolder); err != nil {
		return err
	}
	return f.files.syncFolder(".")
}

func (f *folderStore) loadAll(found func(string, *version, []*version) error) error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		container := entry.Name()
		if container == properties {
			about, err := readVersion(f.root, properties)
			if err != nil {
				return err
			}
			if err := found(accountItself, about, nil); err != nil {
				return err
			}
		}
		if !entry.IsDir() || checkContainer(container) != nil {
			continue
		}
		if err := f.loadContainer(container, found); err != nil {
			return err
		}
	}
	return nil
}

func (f *folderStore) loadContainer(container string, found func(string, *version, []*version) error) error {
	if err := f.restrictMode(container); err != nil {
		return err
	}
	root, err := f.root.OpenRoot(container)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // no data can be lost, because the folder is only read
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
			v.Blocks = nil // Blocks is dropped to save memory; it may take 1 KB for each blob
			blobs = append(blobs, v)
		}
	}
	if about != nil {
		return found(container, about, blobs)
	}
	if len(blobs) > 0 {
		return fmt.Errorf("%s: the file %q is missing", container, properties)
	}
	return f.root.Remove(container) // the container has no properties, because a crash interrupted its creation
}

// restrictMode removes the permissions of other users from a container's folder, because an earlier version granted
// them. It ignores folders of other owners and file systems without permissions.
func (f *folderStore) restrictMode(container string) error {
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

// fileOf returns the file name for a blob.
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

func (f *folderStore) newDraft(int64) (draftContent, error) {
	name := path.Join(unfinished, strings.ToLower(rand.Text()))
	file, err := f.files.createFile(name)
	if err != nil {
		return nil, err
	}
	return &fileDraft{folder: f, name: name, file: file}, nil
}

func (f *folderStore) makeContainer(container string, about *version) error {
	if err := f.root.Mkdir(container, datafolder.PrivateFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := f.files.syncFolder("."); err != nil {
		return err // a folder without properties is removed when the account is opened
	}
	return publishContainer(f, container, about)
}

// removeContainer moves the folder of a container into the folder for drafts. The returned function deletes the moved
// folder; if it fails or is not called, the folder is deleted when the account is next opened.
func (f *folderStore) removeContainer(container string) (func(), error) {
	trash := path.Join(unfinished, strings.ToLower(rand.Text()))
	if err := f.remover.Remove(container, func(name string) error { return f.files.renameFile(name, trash) }); err != nil {
		return nil, err
	}
	if err := f.files.syncFolder("."); err != nil {
		return nil, unsettledError{err}
	}
	return func() { _ = f.root.RemoveAll(trash) }, nil // if this fails, the folder is removed when the account is opened
}

func (f *folderStore) publishDraft(container string, v *version, d draftContent) error {
	file := d.(*fileDraft)
	err := file.appendProperties(v)
	if err == nil {
		err = f.files.renameFile(file.name, pathOf(container, v))
	}
	if err != nil {
		d.discardDraft()
		return err
	}
	if err := f.files.syncFolder(container); err != nil {
		return unsettledError{err}
	}
	v.size, v.Blocks = file.size, nil
	return nil
}

func (f *folderStore) readBlocks(container string, v *version) (blockList, error) {
	stored, err := readVersion(f.root, pathOf(container, v))
	if err != nil {
		return blockList{}, err
	}
	return listOf(stored)
}

func (f *folderStore) openContent(container string, v *version) (blobContent, error) {
	return f.root.Open(pathOf(container, v))
}

func (f *folderStore) removeVersion(container string, v *version) error {
	if err := f.remover.Remove(pathOf(container, v), f.files.removeFile); err != nil {
		return err
	}
	if err := f.files.syncFolder(container); err != nil {
		return unsettledError{err}
	}
	return nil
}

func (f *folderStore) closeStore() error { return errors.Join(f.root.Close(), f.lock.Close()) }

// A fileDraft is an unfinished file, which is open until finishWriting.
type fileDraft struct {
	folder *folderStore
	name   string
	file   *os.File
	size   int64
}

func (d *fileDraft) Write(p []byte) (int, error) {
	n, err := d.folder.files.writeFile(d.file, p)
	d.size += int64(n)
	return n, err
}

func (d *fileDraft) finishWriting() error { return d.file.Close() }

func (d *fileDraft) openDraft() (blobContent, error) { return d.folder.root.Open(d.name) }

func (d *fileDraft) discardDraft() {
	_ = d.file.Close()                    // the file may already be closed
	_ = d.folder.files.removeFile(d.name) // if this fails, the file is removed when the account is opened
}

// appendProperties appends the encoded properties of v to the file and syncs the file.
func (d *fileDraft) appendProperties(v *version) (err error) {
	tail, err := encodeVersion(v)
	if err != nil {
		return err
	}
	file, err := d.folder.root.OpenFile(d.name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := d.folder.files.writeFile(file, tail); err != nil {
		return err
	}
	return d.folder.files.syncFile(file)
}

// systemFiles is the file system of the operating system.
type systemFiles struct{ root *os.Root }

func newSystemFiles(root *os.Root) fileSystem { return systemFiles{root} }

func (s systemFiles) createFile(name string) (*os.File, error) {
	return s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datafolder.PrivateFile)
}

func (systemFiles) writeFile(f *os.File, p []byte) (int, error) { return f.Write(p) }

func (systemFiles) syncFile(f *os.File) error { return f.Sync() }

func (s systemFiles) renameFile(from, to string) error { return s.root.Rename(from, to) }

func (s systemFiles) removeFile(name string) error { return s.root.Remove(name) }

func (s systemFiles) syncFolder(name string) error { return datafolder.SyncIn(s.root, name) }
