package disk

import (
	"context"
	"encoding/binary"
	"fmt"
)

// A Format describes how an engine stores its data. The store contains the format number and the version of the program
// that stored this number. If an older program opens the store, it fails with an error that names this version.
type Format struct {
	Number  uint64 // number of the format that this program reads and writes
	Version string // version of this program; "" stores no version
	Key     []byte // key of the format number; all keys with this prefix are reserved for Format

	IsNew func(State) bool // reports whether the engine has not stored any data yet
	Steps map[uint64]Step  // the step from each old format to the next format
}

// A Step converts one part of a store to the next format. It starts at position, which is nil at first, and returns the
// position of the next part, or nil after the last part.
type Step func(tx Tx, position []byte) (next []byte, err error)

// Prepare converts a store to the format. A new store gets the format number. An older store runs the steps; each part
// is one update, which also stores the next position. After a crash, the next Prepare continues there. If the format is
// newer or no step exists, Prepare changes nothing and returns ErrFormat.
func (f *Format) Prepare(ctx context.Context, store Store) error {
	isDone := false
	err := store.View(func(r Reader) error {
		isDone = !f.IsNew(r) && f.readNumber(r) == f.Number
		return nil
	})
	for !isDone && err == nil {
		err = store.Update(ctx, func(tx Tx) (err error) {
			isDone, err = f.runPart(tx)
			return err
		})
	}
	return err
}

// runPart runs one part of a step. isDone reports that the store already has the format.
func (f *Format) runPart(tx Tx) (isDone bool, err error) {
	if f.IsNew(tx) {
		f.storeNumber(tx, f.Number)
		return true, nil
	}
	found := f.readNumber(tx)
	if found == f.Number {
		return true, nil
	}
	step := f.Steps[found]
	if found > f.Number || step == nil {
		return false, f.newFormatError(tx, found)
	}
	next, err := step(tx, tx.Get(f.formatKey('p')))
	if err != nil {
		return false, fmt.Errorf("bring the store from format %d to %d: %w", found, found+1, err)
	}
	if next != nil {
		tx.Put(f.formatKey('p'), next)
		return false, nil
	}
	tx.Delete(f.formatKey('p'))
	f.storeNumber(tx, found+1)
	return false, nil
}

// readNumber returns the stored format number, or 0 if none exists.
func (f *Format) readNumber(s State) uint64 {
	text := s.Get(f.Key)
	if len(text) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(text)
}

// storeNumber stores a format number and the version of this program.
func (f *Format) storeNumber(tx Tx, number uint64) {
	tx.Put(f.Key, binary.BigEndian.AppendUint64(nil, number))
	if f.Version != "" {
		tx.Put(f.formatKey('v'), []byte(f.Version))
	}
}

// formatKey returns one of the keys that are reserved for Format.
func (f *Format) formatKey(name byte) []byte { return append(f.Key[:len(f.Key):len(f.Key)], name) }

// newFormatError returns the error for a store that this program cannot read.
func (f *Format) newFormatError(s State, found uint64) error {
	if version := s.Get(f.formatKey('v')); len(version) > 0 && found > f.Number {
		return fmt.Errorf("%w: it has format %d, and this version reads %d; version %.40q wrote it, so use that one or a newer one", ErrFormat, found, f.Number, version)
	}
	return fmt.Errorf("%w: it has format %d, and this version reads %d", ErrFormat, found, f.Number)
}
