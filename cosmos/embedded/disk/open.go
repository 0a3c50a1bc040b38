package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// FileName is the name of the only file in a store's folder.
const FileName = "store.db"

const (
	lockTimeout = 300 * time.Millisecond
)

// initialMapSize is how much of the address space a file is mapped to at first. It needs no memory. Growing the mapping
// waits for all readers, including a [Snapshot], and delays all writers, so it starts large. It is small on Windows,
// where the file is as large as the mapping, and on 32-bit systems.
var initialMapSize = func() int {
	const small, large = 1 << 30, 64 << 30 & math.MaxInt
	if runtime.GOOS == "windows" || strconv.IntSize < 64 {
		return small
	}
	return large
}()

// Open opens the store in dir, and creates the folder if it does not exist. It starts a goroutine, which Close ends. If
// the cause of a failure is known, the error wraps ErrLocked, ErrReadOnly, ErrNotFolder, ErrDamaged or ErrFull.
func Open(dir string) (Store, error) { return openStore(dir, 0, System{}, datafolder.Claim{}) }

// A FileSystem opens the file of a store. It must return a real file, because bbolt maps the file and syncs its
// descriptor. Tests can return a different file, or replace the file behind the descriptor.
type FileSystem interface {
	// OpenFile is os.OpenFile.
	OpenFile(name string, flag int, mode os.FileMode) (*os.File, error)

	// SyncFolder makes new and changed file names in a folder durable.
	SyncFolder(dir string) error
}

// System is the FileSystem of the operating system.
type System struct{}

// OpenFile implements FileSystem. It does not follow a symbolic link out of the folder.
func (System) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	file, err := root.OpenFile(filepath.Base(name), flag, mode)
	return file, errors.Join(err, root.Close())
}

// SyncFolder implements FileSystem.
func (System) SyncFolder(dir string) error { return datafolder.Sync(dir) }

// OpenOn is Open with a different file system.
func OpenOn(dir string, files FileSystem) (Store, error) {
	return OpenClaimed(dir, files, datafolder.Claim{})
}

// OpenClaimed is OpenOn for a store in a data folder. It writes the id of the data folder to a new store. If an
// existing store does not fit the claim, it fails and changes nothing.
func OpenClaimed(dir string, files FileSystem, claim datafolder.Claim) (Store, error) {
	return openStore(dir, 0, files, claim)
}

// OpenUnsynced is OpenOn without syncs, for measurements: updates are confirmed before they are on disk. They survive
// the death of the process, but a power failure may destroy the store.
func OpenUnsynced(dir string, files FileSystem) (Store, error) {
	return openStore(dir, 0, files, datafolder.Claim{}, func(o *bbolt.Options) { o.NoSync, o.NoGrowSync = true, true })
}

// openStore opens a store. If maxSize is not 0, it limits the size of the file.
func openStore(dir string, maxSize int, files FileSystem, claim datafolder.Claim, with ...func(*bbolt.Options)) (Store, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, openError(dir, ErrNotFolder)
	}
	if err := claim.MakeOn(dir, files.SyncFolder); err != nil {
		return nil, openError(dir, classifyError(err))
	}
	path := filepath.Join(dir, FileName)
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		if err := claim.Check(path, false, ""); err != nil { // check the claim before bbolt creates the file
			return nil, openError(path, err)
		}
	}
	db, err := openFile(path, maxSize, files, with)
	if err != nil {
		return nil, openError(path, classifyError(err))
	}
	if err := makeBucket(db, path, claim); err != nil {
		return nil, openError(path, classifyError(errors.Join(err, db.Close())))
	}
	if err := files.SyncFolder(dir); err != nil {
		return nil, openError(path, classifyError(errors.Join(err, db.Close())))
	}
	f := &fileStore{db: db, updates: make(chan *queuedUpdate, maxUpdatesPerCommit), done: make(chan struct{})}
	go f.runWriter()
	return f, nil
}

// makeBucket creates the bucket of a new file. The same commit writes the id of the data folder, so after a crash the
// file has both or neither. It does not write to a file that already has both, because the file may be of another
// version; the engine checks that later.
func makeBucket(db *bbolt.DB, path string, claim datafolder.Claim) error {
	var exists bool
	var carried string
	err := db.View(func(tx *bbolt.Tx) error {
		exists = tx.Bucket(bucketName) != nil
		if identity := tx.Bucket(identityBucket); identity != nil {
			carried = string(identity.Get(identityKey))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := claim.Check(path, exists, carried); err != nil || exists && (claim.ID == "" || carried == claim.ID) {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(bucketName); err != nil || claim.ID == "" {
			return err
		}
		identity, err := tx.CreateBucketIfNotExists(identityBucket)
		if err != nil {
			return err
		}
		return identity.Put(identityKey, []byte(claim.ID))
	})
}

// openFile checks a bbolt file and opens it for writing. It recovers from panics, because on a damaged page bbolt may
// panic or read beyond the end of the file.
func openFile(path string, maxSize int, files FileSystem, with []func(*bbolt.Options)) (db *bbolt.DB, err error) {
	var file *os.File // after a panic of bbolt, this function must close the file
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, errors.Join(fmt.Errorf("%w: %v", ErrDamaged, r), file.Close())
		}
	}()
	remember := func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := files.OpenFile(name, flag, mode)
		file = f
		return f, err
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, errors.New("it is a link, which is not followed; put the file itself there, or mount its folder")
	}
	if err == nil && info.Size() > 0 {
		if err := checkPages(path, info.Size(), remember); err != nil {
			return nil, err
		}
	}
	options := &bbolt.Options{
		Timeout:         lockTimeout,
		NoFreelistSync:  true, // bbolt rebuilds the free list when it opens the file, so it need not write it with each commit
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: initialMapSize,
		MaxSize:         maxSize,
		NoStatistics:    true,
		OpenFile:        remember,
	}
	for _, change := range with {
		change(options)
	}
	return bbolt.Open(path, datafolder.PrivateFile, options)
}

// checkPages checks all pages of an existing file. bbolt's own check is no alternative: it runs in another goroutine,
// where a panic ends the process, and which may never end after several faults.
func checkPages(path string, size int64, open func(string, int, os.FileMode) (*os.File, error)) error {
	db, err := bbolt.Open(path, datafolder.PrivateFile, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true, OpenFile: open})
	if err != nil {
		return err
	}
	tx, err := db.Begin(false)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if size < tx.Size() {
		err = fmt.Errorf("%w: the file has only %d of %d bytes", ErrDamaged, size, tx.Size())
	} else {
		err = checkFile(path, int64(db.Info().PageSize))
	}
	return errors.Join(err, tx.Rollback(), db.Close())
}

func checkFile(path string, pageSize int64) error {
	file, err := System{}.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(checkTree(file, pageSize), file.Close())
}

func openError(path string, err error) error { return fmt.Errorf("open %s: %w", path, err) }

// classifyError wraps an error of the operating system in an error of this package, which tells the operator what to
// do.
func classifyError(err error) error {
	var known error
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		known = ErrLocked
	case errors.Is(err, berrors.ErrVersionMismatch):
		known = ErrFormat
	case errors.Is(err, berrors.ErrInvalid),
		errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrFreePagesNotLoaded):
		known = ErrDamaged
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, berrors.ErrMaxSizeReached):
		known = ErrFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		known = ErrReadOnly
	case errors.Is(err, syscall.ENOTDIR):
		known = ErrNotFolder
	}
	if known == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", known, err)
}

// commitError returns the error for a failed commit.
func commitError(err error) error { return fmt.Errorf("%w: %w", ErrBroken, classifyError(err)) }
