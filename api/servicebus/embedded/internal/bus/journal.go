package bus

import (
	"bytes"
	"context"

	"github.com/tidwall/btree"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A write is one changed key that is not committed yet; a nil value stands for
// a deletion.
type write struct {
	key, value []byte
	generation uint64
}

// A generation is what one commit takes in: the writes, and what waits for
// them to be durable.
type generation struct {
	number  uint64
	writes  []*write
	bytes   int
	replies []func(broken error)
	lanes   map[*deliveryLane]struct{} // to look at again when it is committed
	queues  map[*messageQueue]struct{} // whose waiting receivers and chores to look at
}

func newGeneration(number uint64) *generation {
	return &generation{number: number, lanes: map[*deliveryLane]struct{}{}, queues: map[*messageQueue]struct{}{}}
}

// A journal is the store with the writes that are on their way to it on top:
// whoever reads it sees what was written before, committed or not. Writes
// collect in the pending generation while the one before is being committed,
// so one sync serves all that came in during the last.
//
// All methods but save run under the lock of the bus.
type journal struct {
	store    disk.Store
	writes   *btree.BTreeG[*write] // the newest of each key
	pending  *generation
	flushing *generation // nil: nothing is being committed
	failure  error       // of reading; then nothing that was read can be trusted
}

func newJournal(store disk.Store) *journal {
	byKey := func(a, b *write) bool { return bytes.Compare(a.key, b.key) < 0 }
	return &journal{
		store:   store,
		writes:  btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true}),
		pending: newGeneration(1),
	}
}

func (j *journal) putKey(key, value []byte) {
	w := &write{key, value, j.pending.number}
	j.writes.Set(w)
	j.pending.writes = append(j.pending.writes, w)
	j.pending.bytes += len(key) + len(value)
}

func (j *journal) removeKey(key []byte) { j.putKey(key, nil) }

// waitsFor returns the generation that the newest value of key is committed
// with, nil if it is durable already.
func (j *journal) waitsFor(key []byte) *generation {
	w, waits := j.writes.Get(&write{key: key})
	switch {
	case !waits:
		return nil
	case j.flushing != nil && w.generation == j.flushing.number:
		return j.flushing
	default:
		return j.pending
	}
}

// getValue returns the value of key, which must not be changed, or nil.
func (j *journal) getValue(key []byte) []byte {
	if w, ok := j.writes.Get(&write{key: key}); ok {
		return w.value
	}
	var value []byte
	j.viewStore(func(r disk.Reader) {
		if v := r.Get(key); v != nil {
			value = append([]byte{}, v...)
		}
	})
	return value
}

func (j *journal) viewStore(fn func(disk.Reader)) {
	err := j.store.View(func(r disk.Reader) error { fn(r); return nil })
	if err != nil && j.failure == nil {
		j.failure = err
	}
}

// scanRange visits the pairs with from <= key < to until visit returns false. What
// visit gets is valid until it returns, and it must not use the journal.
func (j *journal) scanRange(from, to []byte, visit func(key, value []byte) bool) {
	mine := j.writes.Iter()
	more := mine.Seek(&write{key: from})
	going := true
	// give visits my writes that lie before key, and says whether one of them
	// stands for key itself.
	give := func(key []byte) (replaced bool) {
		for going && more {
			w := mine.Item()
			order := bytes.Compare(w.key, key)
			if order > 0 || bytes.Compare(w.key, to) >= 0 {
				return false
			}
			if w.value != nil {
				going = visit(w.key, w.value)
			}
			more = mine.Next()
			if order == 0 {
				return true
			}
		}
		return false
	}
	j.viewStore(func(r disk.Reader) {
		r.Scan(from, to, func(k, v []byte) bool {
			if !give(k) && going {
				going = visit(k, v)
			}
			return going
		})
	})
	give(to)
}

// firstKey returns the first key of a range, nil if there is none.
func (j *journal) firstKey(from, to []byte) []byte {
	var found []byte
	j.scanRange(from, to, func(key, _ []byte) bool {
		found = append([]byte{}, key...)
		return false
	})
	return found
}

// replyOnceCommitted calls reply once all that was written so far is committed, or with
// why it never will be. It returns false if nothing is under way.
func (j *journal) replyOnceCommitted(reply func(broken error)) bool {
	g := j.pending
	if len(g.writes) == 0 && len(g.replies) == 0 {
		g = j.flushing
	}
	if g == nil {
		return false
	}
	g.replies = append(g.replies, reply)
	return true
}

// beginCommit begins the commit of the pending generation; nil if it is empty.
func (j *journal) beginCommit() *generation {
	g := j.pending
	if len(g.writes) == 0 {
		return nil
	}
	j.flushing, j.pending = g, newGeneration(g.number+1)
	return g
}

// saveGeneration commits a generation. It runs without the lock of the bus.
func (j *journal) saveGeneration(g *generation) error {
	return j.store.Update(context.Background(), func(tx disk.Tx) error {
		for _, w := range g.writes {
			if w.value == nil {
				tx.Delete(w.key)
			} else {
				tx.Put(w.key, w.value)
			}
		}
		return nil
	})
}

// endCommit ends the commit: what was written is in the store, and need not be
// kept here.
func (j *journal) endCommit(g *generation) {
	for _, w := range g.writes {
		if now, ok := j.writes.Get(w); ok && now.generation <= g.number {
			j.writes.Delete(w)
		}
	}
	j.flushing = nil
}
