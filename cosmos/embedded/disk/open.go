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

// FileName is the name of a store's only file in its folder.
const FileName = "store.db"

const (
	lockTimeout = 300 * time.Millisecond
)

// initialMapSize is the size of the first mapping of a file. It is address space, not memory.
// Growing the mapping waits for all readers, including a [Snapshot], and delays all writers, so
// the mapping starts large. It is small on Windows, which makes the file as large as the mapping,
// and on 32-bit systems, which have little address space.
var initialMapSize = func() int {
	const small, large = 1 << 30, 64 << 30 & math.MaxInt
	if runtime.GOOS == "windows" || strconv.IntSize < 64 {
		return small
	}
	return large
}()

// Open opens the store in folder dir, and creates the folder if it does not exist. It
// starts one goroutine, which ends with Close. It fails with ErrLocked, ErrReadOnly,
// ErrNotFolder, ErrDamaged or ErrFull if the cause is known, otherwise with another error.
func Open(dir string) (Store, error) { return openStore(dir, 0, System{}, datafolder.Claim{}) }

// A FileSystem opens the file of a store. It must return a real file, because bbolt maps it
// into memory and syncs it by its descriptor. Tests return other files, or change the file
// behind the descriptor.
type FileSystem interface {
	// OpenFile is os.OpenFile.
	OpenFile(name string, flag int, mode os.FileMode) (*os.File, error)

	// SyncFolder makes the names in a folder durable.
	SyncFolder(dir string) error
}

// System is the FileSystem of the operating system.
type System struct{}

// OpenFile implements FileSystem. It does not follow a link that leads out of the folder.
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

// OpenOn is Open on another file system.
func OpenOn(dir string, files FileSystem) (Store, error) {
	return OpenClaimed(dir, files, datafolder.Claim{})
}

// OpenClaimed is OpenOn for a store of a data folder. It writes the id of the data folder to the
// file. It fails, and changes nothing, if the file does not fit the claim.
func OpenClaimed(dir string, files FileSystem, claim datafolder.Claim) (Store, error) {
	return openStore(dir, 0, files, claim)
}

// OpenUnsynced is OpenOn without syncs, for measurements: an update is confirmed before it is on
// the disk. Updates survive the death of the process; a power failure may lose the whole store.
func OpenUnsynced(dir string, files FileSystem) (Store, error) {
	return openStore(dir, 0, files, datafolder.Claim{}, func(o *bbolt.Options) { o.NoSync, o.NoGrowSync = true, true })
}

// openStore limits the file to maxSize bytes, unless maxSize is 0.
func openStore(dir string, maxSize int, files FileSystem, claim datafolder.Claim, with ...func(*bbolt.Options)) (Store, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, openError(dir, ErrNotFolder)
	}
	if err := claim.MakeOn(dir, files.SyncFolder); err != nil {
		return nil, openError(dir, classifyError(err))
	}
	path := filepath.Join(dir, FileName)
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		if err := claim.Check(path, false, ""); err != nil { // check before bbolt creates the file
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

// makeBucket creates the bucket of a new file, and writes the id of the data folder in the same
// commit: after a crash the file has both or neither. makeBucket does not write to a file that has
// the bucket and the required id: the file may be of another version, which the engine checks when
// it reads the content.
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

// openFile checks the bbolt file and opens it for writing. It recovers from panics, because a damaged
// page can make bbolt panic, or access memory beyond the end of the file.
func openFile(path string, maxSize int, files FileSystem, with []func(*bbolt.Options)) (db *bbolt.DB, err error) {
	var file *os.File // bbolt does not close the file when it panics
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
		NoFreelistSync:  true, // bbolt rebuilds the free list on opening, instead of writing it with every commit
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

// checkPages checks all pages of an existing file. It does not use bbolt's check, which runs in
// another goroutine: a panic in that goroutine would end the process, and after several faults the
// goroutine never ends.
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

// classifyError wraps an error of the operating system in an error of this package, which says what
// the operator must do.
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

// commitError describes the failure of a commit.
func commitError(err error) error { return fmt.Errorf("%w: %w", ErrBroken, classifyError(err)) }
