package delivery

import (
	"container/list"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A window holds parts of streams in memory: entries that this process has published or read.
// When they exceed the limit, the least recently used parts are removed.
type window struct {
	limit int64 // bytes

	mu     sync.Mutex
	bytes  int64
	parts  map[partKey]*windowPart
	recent *list.List // *windowPart values, the most recently used part first
}

// A partKey identifies a part of a stream: some consecutive entries.
type partKey struct {
	stream   domain.StreamName
	priority int
	number   int64 // number of its entries, divided by partEntries
}

// partEntries is the number of entries of a full part.
const partEntries = 64

type windowPart struct {
	key     partKey
	entries [partEntries]*repository.Entry
	bytes   int64
	element *list.Element
}

func newWindow(limit int64) *window {
	return &window{limit: limit, parts: make(map[partKey]*windowPart), recent: list.New()}
}

func keyOf(stream domain.StreamName, e domain.EntryID) partKey {
	return partKey{stream, e.Priority, e.Number / partEntries}
}

// findEntry returns an entry, nil if it is not in memory.
func (w *window) findEntry(stream domain.StreamName, e domain.EntryID) *repository.Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.parts[keyOf(stream, e)]
	if p == nil {
		return nil
	}
	w.recent.MoveToFront(p.element)
	return p.entries[e.Number%partEntries]
}

// putEntries adds entries.
func (w *window) putEntries(stream domain.StreamName, entries []repository.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range entries {
		w.putOne(stream, &entries[i])
	}
	for w.bytes > w.limit && w.recent.Len() > 1 {
		p := w.recent.Remove(w.recent.Back()).(*windowPart)
		delete(w.parts, p.key)
		w.bytes -= p.bytes
	}
}

func (w *window) putOne(stream domain.StreamName, e *repository.Entry) {
	key := keyOf(stream, e.Position.EntryID)
	p := w.parts[key]
	if p == nil {
		p = &windowPart{key: key, bytes: partBytes}
		p.element = w.recent.PushFront(p)
		w.parts[key] = p
		w.bytes += p.bytes
	}
	slot := &p.entries[e.Position.Number%partEntries]
	if *slot != nil {
		return
	}
	one := *e // a copy, because a pointer would keep the whole array in memory
	*slot = &one
	size := sizeOf(e)
	p.bytes += size
	w.bytes += size
}

// partBytes is the approximate size of an empty part.
const partBytes = 1 << 10

// sizeOf returns the approximate size of an entry in memory.
func sizeOf(e *repository.Entry) int64 {
	const fixed, attribute = 300, 64
	n := fixed + len(e.ID) + len(e.ContentType) + len(e.Payload)
	for name, value := range e.Attributes {
		n += attribute + len(name) + len(value)
	}
	return int64(n)
}
