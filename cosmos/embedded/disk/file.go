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

// maxUpdatesPerCommit limits the updates that share a commit, so that the first one does not wait too long.
const maxUpdatesPerCommit = 256

// fill is how full bbolt leaves a page when it splits the page. Most writes append to a range of keys, for which
// bbolt's default of one half would waste space. Keys in random order, such as document ids, need some free space.
const fill = 0.75

var bucketName = []byte("store")

// The bucket and the key that contain the id of the store's data folder.
var identityBucket, identityKey = []byte("identity"), []byte("folder")

// fileStore is a Store in one bbolt file. One goroutine executes all writes: it runs the waiting updates in one
// transaction, syncs, and reports the results. Under load, all updates that arrive during a sync share the next
// transaction. Open starts the goroutine, and Close waits for it.
type fileStore struct {
	db      *bbolt.DB
	updates chan *queuedUpdate
	done    chan struct{} // closed after the goroutine has ended

	mu     sync.RWMutex // read-locked while an update is added to the queue
	closed bool
}

type queuedUpdate struct {
	fn     func(Tx) error
	ctx    context.Context
	answer chan error // has a buffer, so that the writer does not wait for the caller
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

// runWriter commits updates until the channel of updates is closed and empty.
func (f *fileStore) runWriter() {
	defer close(f.done)
	debug.SetPanicOnFault(true) // affects only this goroutine, where only bbolt's mapped file can fault
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

// commitUpdates runs the updates in one transaction and reports the result of each. It returns an error if the store
// must accept no more writes.
//
// A failed update, too, waits for the commit: it may have failed because of an earlier update's write, which its caller
// must not see before the commit.
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

// tryCommit commits the updates that succeed, and stores the result of each update in outcomes. It returns the
// functions that committed updates passed to OnCommit.
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
		if outcomes[i] = u.ctx.Err(); outcomes[i] != nil { // the caller has stopped waiting
			continue
		}
		o := &updateOverlay{bucket: bucket}
		if outcomes[i] = callUpdate(u.fn, o); outcomes[i] != nil {
			if errors.Is(outcomes[i], errPanic) { // bbolt panicked on a damaged page, as it can in View
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

// rollBack ends a transaction in which bbolt panicked. Otherwise the file could not be closed.
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

// View runs fn on the newest state. If bbolt panics or faults on a damaged file, View returns an error, because the
// panic would end the process.
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
