package history

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// A mailbox is the state of a mailbox. It is immutable: every step that changes the state creates another mailbox.
type mailbox struct {
	seen    []int          // for each event id, the number (from 1) of the content that was sent first; 0 if the id was not sent yet
	waiting []int          // ids of events that are not dequeued, in order
	open    []openedBundle // open bundles, in the order of opening
	used    []byte         // for each bundle id, 1 if the bundle was opened
	hash    uint64
}

// An openedBundle is an open bundle, and the time span in which the bundle was opened.
type openedBundle struct {
	bundle   int // number of the bundle in the table
	from, to int64
}

var seed = maphash.MakeSeed()

// withChange returns a changed copy of m.
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
	_, _ = h.Write(m.used) // never fails
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
