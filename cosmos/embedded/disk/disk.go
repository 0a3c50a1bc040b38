// Package disk is a small ordered key-value store with serial transactions.
//
// There are two of them behind one interface: Open keeps its data in a file
// and answers an update only when the file is synced; NewMemory keeps it in
// memory, starts no goroutine and never blocks, so it also runs inside
// testing/synctest.
//
// What a Store promises:
//
//   - Updates happen one after the other. Each sees all before it, so a check
//     and the write that depends on it cannot be separated.
//   - An update whose function fails changes nothing, even when it shared its
//     commit with others.
//   - A View sees whole updates only, and every update that was answered
//     before the View began.
//   - The file survives the death of the process at any instant: an answered
//     update is there, an unanswered one is there as a whole or not at all.
//
// When a commit fails, nobody can say what reached the disk. The store then
// refuses every later update (ErrBroken) instead of trying again; opening the
// file anew finds a consistent state, with or without the failed updates.
//
// What it leaves to others: the meaning of keys and values, and limits on
// their size.
package disk

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrClosed reports the use of a store after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrBroken reports an update after a commit failed.
	ErrBroken = errors.New("the store takes no more writes since a commit failed; restart to open it again")
	// ErrFull reports that the disk has no room for a commit.
	ErrFull = errors.New("the disk is full; make room and restart")
	// ErrLocked reports that another engine has the folder open.
	ErrLocked = errors.New("the folder is in use by another process; stop that one, or use another folder")
	// ErrReadOnly reports a folder in which nothing can be written.
	ErrReadOnly = errors.New("the folder cannot be written; check its owner, its permissions and the mount")
	// ErrNotFolder reports a path that is something else than a folder.
	ErrNotFolder = errors.New("the path is not a folder; name a folder, or remove what is there")
	// ErrFormat reports a file that another version of the program wrote.
	ErrFormat = errors.New("the file was written by another version; open it with that one, or use another folder")
	// ErrDamaged reports a file that is no store, or only part of one.
	ErrDamaged = errors.New("the file is damaged; restore it from a copy, or remove it to start empty")
)

// A State can be read by key and in order. Keys and values it hands out are
// valid until the function of the View or Update returns and must not be changed.
type State interface {
	// Get returns the value of key, nil if none exists.
	Get(key []byte) []byte

	// Scan visits the pairs with from <= key < to in the order of their
	// keys until visit returns false.
	Scan(from, to []byte, visit func(key, value []byte) bool)
}

// A Reader reads one consistent state.
type Reader interface {
	State

	// ScanBack is Scan in the opposite order.
	ScanBack(from, to []byte, visit func(key, value []byte) bool)
}

// A Tx is what an update sees and does. Keys and values given to Put belong
// to the store from then on. A Scan must be over before the next Put or
// Delete.
type Tx interface {
	State
	// Put sets the value of key.
	Put(key, value []byte)

	// Delete removes key; if it is not there, nothing happens.
	Delete(key []byte)

	// OnCommit has fn called after the commit and before Update returns. The
	// calls of all updates come one at a time, in the order of the updates. fn
	// must be fast and must not call Update. An update that fails calls nothing.
	OnCommit(fn func())
}

// A Store is safe for use by many goroutines.
type Store interface {
	// Update runs fn and commits what it did, or returns the error of fn
	// and changes nothing. fn may run in another goroutine.
	//
	// When ctx ends first, Update returns its error although fn may still
	// run and commit: what fn writes to must not be read then.
	Update(ctx context.Context, fn func(Tx) error) error

	// View runs fn on the newest state.
	View(fn func(Reader) error) error

	// ViewPast runs fn on the state some commits ago, or on the oldest one
	// still known. Open knows only the newest.
	ViewPast(commits int, fn func(Reader) error) error

	// Close waits for what is under way. Closing twice does no harm.
	Close() error
}

// errPanic reports a panic of the function of an update.
var errPanic = errors.New("update failed: panic")

// callUpdate turns a panic of fn into its error: it must not end the one goroutine
// that all other writers of a file depend on.
func callUpdate(fn func(Tx) error, tx Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return fn(tx)
}
