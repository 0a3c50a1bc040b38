package history

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// A mailbox is the state of one at some moment. It is never changed once it is
// made: every step that changes something makes another.
type mailbox struct {
	seen    []int    // for each id, which of its contents was sent first, from 1; 0: none yet
	waiting []int    // ids that nobody has dequeued, in the order in which they came
	open    []opened // in the order in which they were opened
	used    []byte   // for each id of a bundle, whether it was one
	hash    uint64
}

// An opened is an open bundle, and the time within which it was opened.
type opened struct {
	bundle   int // of the table
	from, to int64
}

var seed = maphash.MakeSeed()

// withChange returns m once change has been made to a copy of it.
func (m *mailbox) withChange(change func(*mailbox)) *mailbox {
	next := &mailbox{
		seen: slices.Clone(m.seen), waiting: slices.Clone(m.waiting),
		open: slices.Clone(m.open), used: slices.Clone(m.used),
	}
	change(next)
	next.hash = next.hashState()
	return next
}

func (m *mailbox) hashState() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.Write(m.used) // never fails, says its documentation
	for _, content := range m.seen {
		maphash.WriteComparable(&h, content)
	}
	for _, id := range m.waiting {
		maphash.WriteComparable(&h, id)
	}
	for _, o := range m.open {
		maphash.WriteComparable(&h, o)
	}
	return h.Sum64()
}

func (m *mailbox) isEqual(other *mailbox) bool {
	return m == other || m.hash == other.hash &&
		slices.Equal(m.seen, other.seen) && bytes.Equal(m.used, other.used) &&
		slices.Equal(m.waiting, other.waiting) && slices.Equal(m.open, other.open)
}
