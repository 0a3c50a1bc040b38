package disk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// maxUpdatesPerCommit bounds the updates that share a commit, so that the first update does not wait
// too long.
const maxUpdatesPerCommit = 256

// fill is the part of a page that stays filled when bbolt splits the page. Most writes append to a
// range of keys: there, the default of one half would waste the other half. Keys in random order,
// such as the ids of documents, need some free space.
const fill = 0.75

var bucketName = []byte("store")

// The bucket and the key under which the id of the store's data folder is stored.
var identityBucket, identityKey = []byte("identity"), []byte("folder")

// fileStore is a Store in one bbolt file. One goroutine, which Open starts and Close waits for,
// does all writes: it dequeues the waiting updates, runs them in one transaction, syncs, and
// completes them. Under load, the updates that arrive during a sync share the next transaction.
type fileStore struct {
	db      *bbolt.DB
	updates chan *queuedUpdate
	done    chan struct{} // closed when the goroutine has ended

	mu     sync.RWMutex // held for reading while an update is enqueued
	closed bool
}

type queuedUpdate struct {
	fn     func(Tx) error
	ctx    context.Context
	answer chan error // buffered, so that the writer never waits for a caller
}

func (f *fileStore) Update(ctx context.Context, fn func(Tx) error) error {
	u := &queuedUpdate{fn: fn, ctx: ctx, answer: make(chan error, 1)}
	if err := f.enqueue(u); err != nil {
		return err
	}
	select {
	case err := <-u.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fileStore) enqueue(u *queuedUpdate) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return ErrClosed
	}
	select {
	case f.updates <- u:
		return nil
	case <-u.ctx.Done():
		return u.ctx.Err()
	}
}

// runWriter commits updates until their channel is closed and empty.
func (f *fileStore) runWriter() {
	defer close(f.done)
	debug.SetPanicOnFault(true) // applies to this goroutine, in which only bbolt's mapped file can fault
	var broken error
	for first := range f.updates {
		waiting := f.gatherUpdates(first)
		if broken != nil {
			answerAll(waiting, broken)
			continue
		}
		broken = f.commitUpdates(waiting)
	}
}

func (f *fileStore) gatherUpdates(first *queuedUpdate) []*queuedUpdate {
	waiting := []*queuedUpdate{first}
	for len(waiting) < maxUpdatesPerCommit {
		select {
		case u, open := <-f.updates:
			if !open {
				return waiting
			}
			waiting = append(waiting, u)
		default:
			return waiting
		}
	}
	return waiting
}

// commitUpdates runs the updates in one transaction and completes all of them. It returns an
// error if the store must accept no more writes.
//
// A failed update, too, is completed after the commit: it may have failed because of a write of an
// earlier update, and its caller must not learn about that write before the commit.
func (f *fileStore) commitUpdates(waiting []*queuedUpdate) error {
	outcomes := make([]error, len(waiting))
	calls, err := f.tryCommit(waiting, outcomes)
	if err != nil {
		err = commitError(err)
		answerAll(waiting, err)
		return err
	}
	calls.runAll()
	for i, u := range waiting {
		u.answer <- outcomes[i]
	}
	return nil
}

// tryCommit commits the updates that succeed, and sets the outcome of each update. It returns the
// functions that the committed updates passed to OnCommit.
func (f *fileStore) tryCommit(waiting []*queuedUpdate, outcomes []error) (calls commitHooks, err error) {
	tx, err := f.db.Begin(true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(fmt.Errorf("%w: writing it failed: %v", ErrDamaged, r), rollBack(tx))
		}
	}()
	bucket := tx.Bucket(bucketName)
	bucket.FillPercent = fill
	wrote := false
	for i, u := range waiting {
		if outcomes[i] = u.ctx.Err(); outcomes[i] != nil { // the caller no longer waits
			continue
		}
		o := &updateOverlay{bucket: bucket}
		if outcomes[i] = callUpdate(u.fn, o); outcomes[i] != nil {
			if errors.Is(outcomes[i], errPanic) { // a panic of bbolt on a damaged page, as in View
				outcomes[i] = fmt.Errorf("%w: reading it failed: %w", ErrDamaged, outcomes[i])
			}
			continue
		}
		wrote = wrote || o.writes != nil
		if err := o.applyWrites(); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
		calls = append(calls, o.commitHooks...)
	}
	if !wrote {
		return calls, tx.Rollback()
	}
	return calls, tx.Commit()
}

// rollBack ends a transaction in which bbolt panicked, so that the file can be closed.
func rollBack(tx *bbolt.Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("rolling back: %v", r)
		}
	}()
	return tx.Rollback()
}

func answerAll(updates []*queuedUpdate, err error) {
	for _, u := range updates {
		u.answer <- err
	}
}

// View returns an error if bbolt panics or faults on a damaged file, which would otherwise end
// the process.
func (f *fileStore) View(fn func(Reader) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: reading it failed: %v", ErrDamaged, r)
		}
	}()
	err = f.db.View(func(tx *bbolt.Tx) error { return fn(fileReader{tx.Bucket(bucketName)}) })
	if errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

func (f *fileStore) ViewPast(_ int, fn func(Reader) error) error { return f.View(fn) }

func (f *fileStore) Close() error {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.updates)
	}
	f.mu.Unlock()
	<-f.done
	return f.db.Close()
}

type fileReader struct{ bucket *bbolt.Bucket }

func (r fileReader) Get(key []byte) []byte { return r.bucket.Get(key) }

func (r fileReader) Scan(from, to []byte, visit func(key, value []byte) bool) {
	scanBucket(r.bucket, from, to, visit)
}

func (r fileReader) ScanBack(from, to []byte, visit func(key, value []byte) bool) {
	scanBucketBack(r.bucket, from, to, visit)
}
