// Package disk is a small ordered key-value store with serial transactions.
//
// It has two implementations of one interface. The store of Open keeps its data in a file, and
// confirms an update only when the file is synced. The store of NewMemory keeps its data in memory,
// starts no goroutine and never blocks, so it also works inside testing/synctest.
//
// What a Store promises:
//
//   - Updates happen one after the other. Each update sees all updates before it, so no other
//     update can come between a check and the write that depends on the check.
//   - An update whose function fails changes nothing, even when it shares its
//     commit with other updates.
//   - A View sees whole updates only, and every update that was confirmed
//     before the View began.
//   - The file survives the death of the process at any instant: it contains every confirmed
//     update, and each unconfirmed update completely or not at all.
//
// When a commit fails, it is unknown what reached the disk. The store then refuses every later
// update with ErrBroken and does not retry. Opening the file again restores a consistent state,
// with or without the failed updates.
//
// The package does not interpret keys and values, and does not limit their size.
package disk

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrClosed reports the use of a store after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrBroken reports an update that follows a failed commit.
	ErrBroken = errors.New("the store accepts no writes since a commit failed; restart to open it again")
	// ErrFull reports that the disk is full.
	ErrFull = errors.New("the disk is full; make room and restart")
	// ErrLocked reports that another engine has opened the folder.
	ErrLocked = errors.New("the folder is in use by another process; stop that one, or use another folder")
	// ErrReadOnly reports a folder that cannot be written.
	ErrReadOnly = errors.New("the folder cannot be written; check its owner, its permissions and the mount")
	// ErrNotFolder reports a path that is not a folder.
	ErrNotFolder = errors.New("the path is not a folder; name a folder, or remove what is there")
	// ErrFormat reports a file in a format of another version of the program.
	ErrFormat = errors.New("the file was written by another version; open it with that one, or use another folder")
	// ErrDamaged reports a file that is not a store, or is cut off or corrupt.
	ErrDamaged = errors.New("the file is damaged; restore the whole folder from a backup")
)

// A State is an ordered set of keys with values. The keys and values that its methods return must not be changed, and
// are valid until the function of the View or Update returns.
type State interface {
	// Get returns the value of key, or nil if key does not exist.
	Get(key []byte) []byte

	// Scan calls visit for the pairs with from <= key < to, in key order, until visit returns false.
	Scan(from, to []byte, visit func(key, value []byte) bool)
}

// A Reader reads a state that does not change.
type Reader interface {
	State

	// ScanBack is Scan in descending key order.
	ScanBack(from, to []byte, visit func(key, value []byte) bool)
}

// A Tx reads and writes the state within one update. Slices passed to Put belong to the store from then on. Put and
// Delete must not be called during a Scan.
type Tx interface {
	State
	// Put sets the value of key.
	Put(key, value []byte)

	// Delete removes key, if it exists.
	Delete(key []byte)

	// OnCommit registers fn, which is called after the commit and before Update returns. Calls do not overlap and have
	// the order of the updates. fn must be fast and must not call Update. If the update fails, fn is not called.
	OnCommit(fn func())
}

// A Store is a key-value store. It is safe for concurrent use.
type Store interface {
	// Update runs fn and commits its writes. If fn returns an error, Update returns it and changes nothing. fn may run
	// in another goroutine.
	//
	// If ctx ends first, Update returns the error of ctx. fn may then still run and commit, so the caller must not read
	// variables that fn writes.
	Update(ctx context.Context, fn func(Tx) error) error

	// View runs fn on the newest state.
	View(fn func(Reader) error) error

	// ViewPast runs fn on the state before the given number of commits, or on the oldest state that is still available.
	// A store of Open has only the newest state.
	ViewPast(commits int, fn func(Reader) error) error

	// Close waits for running views and updates, then closes the store. Further calls have no effect.
	Close() error
}

// errPanic reports that the function of an update panicked.
var errPanic = errors.New("update failed: panic")

// callUpdate runs fn and converts a panic to an error, because a panic must not end the goroutine that runs all
// updates.
func callUpdate(fn func(Tx) error, tx Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return fn(tx)
}
