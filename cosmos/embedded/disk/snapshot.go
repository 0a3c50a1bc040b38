package disk

import (
	"context"
	"errors"
	"io"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// ErrNoFile reports a store in memory, of which no snapshot can be taken.
var ErrNoFile = errors.New("the store is in memory and has no file")

// A Snapshot is the file of a store at one point in time. Until it is closed, no page of the store is reused: the file
// grows with every write, and Store.Close waits.
type Snapshot struct{ tx *bbolt.Tx }

// Size returns the length of the file in bytes.
func (s *Snapshot) Size() int64 { return s.tx.Size() }

// WriteTo writes the whole file to w. It may be called only once.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) { return s.tx.WriteTo(w) }

// Close releases the pages. Further calls have no effect.
func (s *Snapshot) Close() error {
	if err := s.tx.Rollback(); !errors.Is(err, bbolterrors.ErrTxClosed) {
		return err
	}
	return nil
}

// TakeSnapshot returns a snapshot that includes every update confirmed before the call. If meanwhile is not nil, it is
// called at the time of the snapshot, while no update is committed, so that it can read other stores at the same time.
// It must be fast and must not use store; TakeSnapshot returns its error. A store in memory fails with ErrNoFile.
func TakeSnapshot(ctx context.Context, store Store, meanwhile func() error) (*Snapshot, error) {
	f, ok := store.(*fileStore)
	if !ok {
		return nil, ErrNoFile
	}
	taken := make(chan *Snapshot, 1)
	err := f.Update(ctx, func(Tx) error {
		s, err := f.beginSnapshot()
		if err != nil {
			return err
		}
		if meanwhile != nil {
			if err := meanwhile(); err != nil {
				return errors.Join(err, s.Close())
			}
		}
		taken <- s
		return nil
	})
	select {
	case s := <-taken:
		if err != nil { // the commit has failed, or ctx has ended
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	default:
		return nil, err
	}
}

// ReadSnapshot returns a snapshot of the newest commit, and does not wait for updates. A store in memory fails with
// ErrNoFile.
func ReadSnapshot(store Store) (*Snapshot, error) {
	f, ok := store.(*fileStore)
	if !ok {
		return nil, ErrNoFile
	}
	return f.beginSnapshot()
}

func (f *fileStore) beginSnapshot() (*Snapshot, error) {
	tx, err := f.db.Begin(false)
	if errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		err = ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return &Snapshot{tx}, nil
}
