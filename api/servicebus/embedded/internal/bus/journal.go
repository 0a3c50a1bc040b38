package bus

import (
	"bytes"
	"context"

	"github.com/tidwall/btree"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A write is an uncommitted write of one key. If the value is nil, the write deletes the key.
type write struct {
	key, value []byte
	generation uint64
}

// A generation is the content of one commit: its writes, and the callbacks and lanes that wait for the commit.
type generation struct {
	number  uint64
	writes  []*write
	bytes   int
	replies []func(broken error)
	lanes   map[*deliveryLane]struct{} // lanes to serve after the commit
	queues  map[*messageQueue]struct{} // queues for which waiting session requests and maintenance are processed after the commit
}

func newGeneration(number uint64) *generation {
	return &generation{number: number, lanes: map[*deliveryLane]struct{}{}, queues: map[*messageQueue]struct{}{}}
}

// A journal combines the store with uncommitted writes: a read returns the newest value, committed or not. While a
// generation is being committed, new writes go to the next generation. So one sync commits all writes that were made
// during the previous commit.
//
// All methods except saveGeneration require the lock of the bus.
type journal struct {
	store    disk.Store
	writes   *btree.BTreeG[*write] // the newest write of each key
	pending  *generation
	flushing *generation // generation that is being committed, or nil
	failure  error       // first error of a read; later results are then unreliable
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

// pendingGeneration returns the generation that contains the newest value of key, or nil if that value is committed.
func (j *journal) pendingGeneration(key []byte) *generation {
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

// getValue returns the value of key, or nil. The caller must not modify the value.
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

// scanRange calls visit for each pair with from <= key < to, until visit returns false. The key and the value are valid
// only during the call. visit must not use the journal.
func (j *journal) scanRange(from, to []byte, visit func(key, value []byte) bool) {
	mine := j.writes.Iter()
	more := mine.Seek(&write{key: from})
	going := true
	// give visits the uncommitted writes before key, and reports whether key itself has an
	// uncommitted write.
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

// firstKey returns the first key of a range, or nil if the range is empty.
func (j *journal) firstKey(from, to []byte) []byte {
	var found []byte
	j.scanRange(from, to, func(key, _ []byte) bool {
		found = append([]byte{}, key...)
		return false
	})
	return found
}

// replyOnceCommitted calls reply after all current writes are committed; broken is the error if the commit fails. It
// returns false if there are no uncommitted writes.
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

// beginCommit makes the pending generation the one that is being committed, and returns it. It returns nil if there is
// nothing to commit.
func (j *journal) beginCommit() *generation {
	g := j.pending
	if len(g.writes) == 0 {
		return nil
	}
	j.flushing, j.pending = g, newGeneration(g.number+1)
	return g
}

// saveGeneration writes a generation to the store. The caller must not hold the lock of the bus.
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

// endCommit removes the committed writes from the journal, because the store now contains them.
func (j *journal) endCommit(g *generation) {
	for _, w := range g.writes {
		if now, ok := j.writes.Get(w); ok && now.generation <= g.number {
			j.writes.Delete(w)
		}
	}
	j.flushing = nil
}
