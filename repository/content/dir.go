package content

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Dir stores objects as files in a folder. It is safe for concurrent use.
type Dir struct {
	root    *os.Root
	remover datafolder.Remover

	mu      sync.Mutex
	durable map[string]bool // folders whose entry in the parent folder this process has synced
}

var _ repository.Content = (*Dir)(nil)

// unfinished is the folder that contains the files of unfinished Puts. No object is in this folder,
// because a plus sign cannot occur in the name of an object.
const unfinished = "+unfinished"

// FileFormat is the format number of folders that this version reads and writes.
const FileFormat = 1

// formatFile is the name of the file that contains the format number of a folder. A folder without this
// file has format 1.
const formatFile = "+format"

// OpenDir opens the folder dir, and creates dir if necessary. It removes files that a crash left
// unfinished, and writes a test file, so that it fails if the folder is unusable. If the folder has
// another format, OpenDir fails with NewerFormat and changes nothing. The caller closes the Dir.
func OpenDir(dir string) (*Dir, error) { return OpenClaimed(dir, datafolder.Claim{}) }

// OpenClaimed opens dir as OpenDir does, as a store of a data folder. If dir does not fit the claim,
// OpenClaimed fails and changes nothing.
func OpenClaimed(dir string, claim datafolder.Claim) (*Dir, error) {
	d, err := openDir(dir, claim)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil, domain.Errorf(domain.Invalid, "open content folder %s: it is not a folder, or its parent is not a folder: %w", dir, err)
	case domain.KindOf(err) == domain.NewerFormat:
		return nil, fmt.Errorf("open content folder %s: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("open content folder %s: %w", dir, classifyFileError(err))
	}
	return d, nil
}

func openDir(dir string, claim datafolder.Claim) (*Dir, error) {
	if err := claim.Make(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &Dir{root: root, durable: map[string]bool{".": true}}
	for _, step := range []func() error{d.checkFormat, d.cleanTemporary, d.tryWrite} {
		if err := step(); err != nil {
			_ = root.Close()
			return nil, err
		}
	}
	return d, nil
}

// checkFormat fails with NewerFormat if the folder does not have FileFormat.
func (d *Dir) checkFormat() error {
	text, err := d.root.ReadFile(formatFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if number := strings.TrimSpace(string(text)); number != strconv.Itoa(FileFormat) {
		return domain.Errorf(domain.NewerFormat, "its file %s has format %.20q, but this version reads format %d; use the version that wrote it, or another folder", formatFile, number, FileFormat)
	}
	return nil
}

// cleanTemporary removes unfinished and held files.
func (d *Dir) cleanTemporary() error {
	if err := errors.Join(d.root.RemoveAll(unfinished), datafolder.CleanHeld(d.root)); err != nil {
		return err
	}
	return d.root.Mkdir(unfinished, datafolder.PrivateFolder)
}

// tryWrite creates, links and removes a test file, with the same operations as Put.
func (d *Dir) tryWrite() error {
	const written, linked = unfinished + "/try", unfinished + "/try-link"
	f, err := d.root.OpenFile(written, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datafolder.PrivateFile)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), d.root.Link(written, linked), d.root.Remove(written), d.root.Remove(linked), datafolder.SyncIn(d.root, "."))
}

// Hold starts a hold. Until the hold is released, the files of deleted objects are retained. These
// objects can no longer be read, but [datafolder.Hold.Each] visits their files.
func (d *Dir) Hold() (*datafolder.Hold, error) { return d.remover.Hold(d.root) }

// Temporary returns the names of files and folders that a copy of the folder must omit.
func (d *Dir) Temporary() []string { return []string{unfinished} }

// Close releases the folder. Open readers stay usable.
func (d *Dir) Close() error { return d.root.Close() }

// Put implements [repository.Content].
func (d *Dir) Put(ctx context.Context, name string, r io.Reader) error {
	file, err := FilePath(name)
	if err != nil {
		return err
	}
	temporary := path.Join(unfinished, rand.Text())
	err = d.writeDurable(ctx, temporary, r)
	if err == nil {
		err = d.publishFile(temporary, file)
	}
	_ = d.root.Remove(temporary) // OpenDir removes the file if this fails
	if err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	return nil
}

// writeDurable writes the content of r to a durable file.
func (d *Dir) writeDurable(ctx context.Context, temporary string, r io.Reader) error {
	f, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datafolder.PrivateFile)
	if err != nil {
		return classifyFileError(err)
	}
	if _, err := io.Copy(fileWriter{f}, contextReader{ctx, r}); err != nil {
		_ = f.Close()
		return err
	}
	return classifyFileError(errors.Join(f.Sync(), f.Close()))
}

// publishFile links a durable file to its final name, durably. If the name exists, it fails with
// Conflict.
func (d *Dir) publishFile(temporary, file string) error {
	folder := path.Dir(file)
	if err := d.makeFolder(folder); err != nil {
		return classifyFileError(err)
	}
	switch err := d.root.Link(temporary, file); {
	case errors.Is(err, fs.ErrExist):
		return domain.Errorf(domain.Conflict, "the object exists already")
	case err != nil:
		return classifyFileError(err)
	}
	if err := datafolder.SyncIn(d.root, folder); err != nil {
		return classifyFileError(errors.Join(err, d.root.Remove(file))) // a failed Put must not leave a visible object
	}
	return nil
}

// makeFolder creates folder and its parents, durably. It also syncs an existing folder, because a crash
// may have prevented the sync after its creation.
func (d *Dir) makeFolder(folder string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.makeFolderLocked(folder)
}

func (d *Dir) makeFolderLocked(folder string) error {
	if d.durable[folder] {
		return nil
	}
	parent := path.Dir(folder)
	if err := d.makeFolderLocked(parent); err != nil {
		return err
	}
	if err := d.root.Mkdir(folder, datafolder.PrivateFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := datafolder.SyncIn(d.root, parent); err != nil {
		return err
	}
	const maxDurable = 100_000 // limit for the entries of durable; an empty map only costs syncs
	if len(d.durable) > maxDurable {
		d.durable = map[string]bool{".": true}
	}
	d.durable[folder] = true
	return nil
}

// Open implements [repository.Content].
func (d *Dir) Open(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
	file, err := FilePath(s.Object)
	if err != nil {
		return nil, err
	}
	if s.Offset < 0 || s.Length < 0 {
		return nil, domain.Errorf(domain.Invalid, "open %s: offset %d and length %d must not be negative", s.Object, s.Offset, s.Length)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Object, err)
	}
	f, err := d.root.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, domain.Errorf(domain.NotFound, "open %s: the object does not exist", s.Object)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", s.Object, classifyFileError(err))
	}
	if err := checkLength(f, s); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", s.Object, err)
	}
	return fileSection{io.NewSectionReader(f, s.Offset, s.Length), f}, nil
}

// checkLength returns an error if f is too short for s.
func checkLength(f *os.File, s repository.Section) error {
	info, err := f.Stat()
	if err != nil {
		return classifyFileError(err)
	}
	if size := info.Size(); s.Offset > size || s.Length > size-s.Offset {
		return domain.Errorf(domain.Damaged, "want %d bytes from %d, but the object has only %d", s.Length, s.Offset, size)
	}
	return nil
}

// A fileSection reads a section of a file. Closing the fileSection closes the file.
type fileSection struct {
	io.Reader
	io.Closer
}

// Delete implements [repository.Content]. The deletion is durable once Delete returns.
func (d *Dir) Delete(ctx context.Context, name string) error {
	file, err := FilePath(name)
	if err != nil {
		return err
	}
	err = ctx.Err()
	if err == nil {
		err = d.removeFile(file)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

func (d *Dir) removeFile(file string) error {
	switch err := d.remover.Remove(file, d.root.Remove); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return classifyFileError(err)
	}
	return classifyFileError(datafolder.SyncIn(d.root, path.Dir(file)))
}

// DeleteFolder implements [repository.Content]. The deletion is durable once DeleteFolder returns.
func (d *Dir) DeleteFolder(ctx context.Context, folder string) error {
	file, err := FilePath(folder)
	if err != nil {
		return err
	}
	if err = ctx.Err(); err == nil {
		err = d.removeFolder(strings.TrimSuffix(file, "="))
	}
	if err != nil {
		return fmt.Errorf("delete folder %s: %w", folder, err)
	}
	return nil
}

// removeFolder removes a folder durably. It also deletes the folder and its subfolders from d.durable, so that
// makeFolder syncs their entries in the parent folders if it creates them again.
func (d *Dir) removeFolder(folder string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.root.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	maps.DeleteFunc(d.durable, func(known string, _ bool) bool {
		return known == folder || strings.HasPrefix(known, folder+"/")
	})
	if err := d.remover.Remove(folder, d.root.RemoveAll); err != nil {
		return classifyFileError(err)
	}
	return classifyFileError(datafolder.SyncIn(d.root, path.Dir(folder)))
}

// A fileWriter writes to a file. It classifies the errors of the file; errors of the source, which io.Copy
// also returns, remain unclassified.
type fileWriter struct{ f *os.File }

func (w fileWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	return n, classifyFileError(err)
}

// A contextReader reads from r, and fails when its context ends. It hides all other methods of r, so that
// io.Copy calls Read repeatedly.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
