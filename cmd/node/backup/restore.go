package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// Names of folders that exist in a data folder during a restore.
const (
	draftFolder  = ".restore"  // contains files while they are extracted
	sealedFolder = ".restored" // contains verified and durable files; when it exists, the restore is visible
	filesFolder  = "data"      // subfolder of draftFolder and sealedFolder that contains the files
)

// FrozenFile is a file in the data folder. While it exists, every queue is
// frozen, except those that an operator has thawed.
const FrozenFile = "frozen"

// ErrInterrupted means that a restore into the data folder was interrupted
// before the restored data became visible.
var ErrInterrupted = errors.New("a restore into it was interrupted, and nothing of it counts; repeat messagehub restore, or remove the folder " + draftFolder + " to start without data")

// A NotEmptyError means that a folder is not empty. It names an entry of the
// folder.
type NotEmptyError struct{ Folder, Name string }

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("data folder %s: it is not empty: it holds %s; restore into a new folder, or move what is there away", e.Folder, e.Name)
}

// RestoreOptions configure Restore.
type RestoreOptions struct {
	Frozen   []byte // content of FrozenFile; if nil, the file is not created
	Progress func(Progress)

	write func(*os.File, []byte) (int, error) // replaces os.File.Write in tests
}

// Restore restores an archive to the empty folder dir, whose lock the caller
// holds. After an error the folder is empty again, unless the error says
// otherwise. If an earlier restore of the same archive was killed after its
// data became visible, Restore completes it.
func Restore(ctx context.Context, dir string, from io.ReadSeeker, o RestoreOptions) (s Summary, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return s, err
	}
	defer func() { _ = root.Close() }() // all writes are already synced
	if done, isSame, err := completeSame(ctx, root, from); err != nil || isSame {
		return done, err
	}
	if err := requireEmpty(dir, root); err != nil {
		return s, err
	}
	if err := root.RemoveAll(draftFolder); err != nil {
		return s, err
	}
	if s, err = extractArchive(ctx, root, from, &o); err != nil {
		return s, errors.Join(err, root.RemoveAll(draftFolder))
	}
	if err := root.Rename(draftFolder, sealedFolder); err != nil {
		return s, errors.Join(err, root.RemoveAll(draftFolder))
	}
	if err := datafolder.SyncIn(root, "."); err != nil {
		return s, fmt.Errorf("data folder %s: it is restored, but may not be after a loss of power; run the same command again: %w", dir, err)
	}
	if err := moveIntoPlace(root); err != nil {
		return s, fmt.Errorf("data folder %s: it is restored, and the hub moves the files to their places when it starts: %w", dir, err)
	}
	return s, nil
}

// completeSame completes an earlier restore whose data is already visible.
// isSame is true if there was such a restore, and it was from this archive.
func completeSame(ctx context.Context, root *os.Root, from io.ReadSeeker) (s Summary, isSame bool, err error) {
	text, err := root.ReadFile(path.Join(sealedFolder, headMember))
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, false, err
	}
	if err := moveIntoPlace(root); err != nil {
		return s, false, err
	}
	head, err := ReadHead(ctx, from)
	if err != nil {
		return s, false, err
	}
	_, err = from.Seek(0, io.SeekStart)
	return s, head == s.Head, err
}

// requireEmpty fails with a *NotEmptyError unless the folder is empty. It
// ignores the lock, the entries of a new file system, and what a killed restore
// left behind.
func requireEmpty(dir string, root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{"lock", "lost+found", draftFolder}, e.Name()) {
			return &NotEmptyError{dir, e.Name()}
		}
	}
	return nil
}

// extractArchive extracts an archive to draftFolder, and syncs it.
func extractArchive(ctx context.Context, root *os.Root, from io.Reader, o *RestoreOptions) (s Summary, err error) {
	files := path.Join(draftFolder, filesFolder)
	if err := errors.Join(root.Mkdir(draftFolder, datafolder.PrivateFolder), root.Mkdir(files, datafolder.PrivateFolder)); err != nil {
		return s, err
	}
	x := &extraction{root: root, folder: files, write: o.write}
	if x.write == nil {
		x.write = func(f *os.File, p []byte) (int, error) { return f.Write(p) }
	}
	if s, err = readArchive(ctx, from, x, o.Progress); err != nil {
		return s, err
	}
	if o.Frozen != nil {
		if err := x.writeSmall(path.Join(files, FrozenFile), o.Frozen); err != nil {
			return s, err
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	if err := x.writeSmall(path.Join(draftFolder, headMember), text); err != nil {
		return s, err
	}
	return s, syncFolders(root, draftFolder)
}

// syncFolders syncs a folder and all its subfolders, so that their entries are
// durable.
func syncFolders(root *os.Root, folder string) error {
	return fs.WalkDir(root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return datafolder.SyncIn(root, filepath.FromSlash(name))
	})
}

// An extraction is a destination that writes the files of an archive below a
// folder of root.
type extraction struct {
	root   *os.Root
	folder string
	write  func(*os.File, []byte) (int, error)
}

func (x *extraction) createFile(name string) (io.WriteCloser, error) {
	name = path.Join(x.folder, name)
	if err := x.root.MkdirAll(path.Dir(name), datafolder.PrivateFolder); err != nil {
		return nil, err
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, datafolder.PrivateFile)
	if err != nil {
		return nil, err
	}
	return &extractedFile{f, x.write}, nil
}

func (x *extraction) writeSmall(name string, text []byte) error {
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datafolder.PrivateFile)
	if err != nil {
		return err
	}
	_, err = x.write(f, text)
	return errors.Join(err, (&extractedFile{f, x.write}).Close())
}

// An extractedFile is a file that Close syncs.
type extractedFile struct {
	file  *os.File
	write func(*os.File, []byte) (int, error)
}

func (f *extractedFile) Write(p []byte) (int, error) { return f.write(f.file, p) }

func (f *extractedFile) Close() error { return errors.Join(f.file.Sync(), f.file.Close()) }

// Finish moves the files of an interrupted restore into place, if the restored
// data is already visible. If a restore was interrupted earlier, it fails with
// ErrInterrupted. Otherwise it does nothing. The caller must hold the folder's
// lock.
func Finish(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // all writes are already synced
	if _, err := root.Lstat(sealedFolder); err == nil {
		return moveIntoPlace(root)
	}
	if _, err := root.Lstat(draftFolder); err == nil {
		return fmt.Errorf("data folder %s: %w", dir, ErrInterrupted)
	}
	return nil
}

// IsRestored reports whether Finish would move files.
func IsRestored(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, sealedFolder))
	return err == nil
}

// IsInterrupted reports whether Finish would fail with ErrInterrupted.
func IsInterrupted(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, draftFolder))
	return err == nil && !IsRestored(dir)
}

// moveIntoPlace moves the restored files into place. It can be repeated after
// an interruption.
func moveIntoPlace(root *os.Root) error {
	files := path.Join(sealedFolder, filesFolder)
	entries, err := fs.ReadDir(root.FS(), files)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := root.Rename(path.Join(files, e.Name()), e.Name()); err != nil {
			return err
		}
	}
	if err := datafolder.SyncIn(root, "."); err != nil {
		return err
	}
	if err := root.RemoveAll(sealedFolder); err != nil {
		return err
	}
	return datafolder.SyncIn(root, ".")
}
