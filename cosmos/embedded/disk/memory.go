package disk

import (
	"bytes"
	"context"
	"sync"

	"github.com/tidwall/btree"
)

// maxPastStates is the number of past states that a memory store retains for ViewPast. States share the nodes that are
// equal.
const maxPastStates = 64

type pair struct{ key, value []byte }

type tree = btree.BTreeG[pair]

func newTree() *tree {
	return btree.NewBTreeGOptions(func(a, b pair) bool { return bytes.Compare(a.key, b.key) < 0 },
		btree.Options{NoLocks: true})
}

// memoryStore stores every state as an immutable tree. An update changes a copy of the newest tree, in which only
// changed nodes are copied. If the update succeeds, the copy becomes the newest state.
type memoryStore struct {
	writing sync.Mutex // locked for the duration of an update, because updates are serial

	mu     sync.Mutex // guards the fields below; not locked while the function of a View or Update runs
	states []*tree    // the last state is the newest
	closed bool
	views  sync.WaitGroup
}

// NewMemory returns an empty store in memory.
func NewMemory() Store { return &memoryStore{states: []*tree{newTree()}} }

func (m *memoryStore) Update(ctx context.Context, fn func(Tx) error) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	// Copy marks the nodes of the original tree as shared. Only this line writes the marks, while both mutexes are
	// locked; readers do not read them.
	next := m.states[len(m.states)-1].Copy()
	m.mu.Unlock()

	tx := &memoryTx{memoryReader: memoryReader{next}}
	if err := callUpdate(fn, tx); err != nil {
		return err
	}
	m.publishState(next)
	tx.runAll()
	return nil
}

// publishState makes next the newest state of the store.
func (m *memoryStore) publishState(next *tree) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.states) > maxPastStates {
		m.states = append(m.states[:0:0], m.states[len(m.states)-maxPastStates:]...)
	}
	m.states = append(m.states, next)
}

func (m *memoryStore) View(fn func(Reader) error) error { return m.ViewPast(0, fn) }

func (m *memoryStore) ViewPast(commits int, fn func(Reader) error) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	m.views.Add(1)
	state := m.states[max(0, len(m.states)-1-max(0, commits))]
	m.mu.Unlock()
	defer m.views.Done()
	return fn(memoryReader{state})
}

func (m *memoryStore) Close() error {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.views.Wait()
	return nil
}

type memoryReader struct{ tree *tree }

func (r memoryReader) Get(key []byte) []byte {
	p, _ := r.tree.Get(pair{key: key})
	return p.value
}

func (r memoryReader) Scan(from, to []byte, visit func(key, value []byte) bool) {
	r.tree.Ascend(pair{key: from}, func(p pair) bool {
		return bytes.Compare(p.key, to) < 0 && visit(p.key, p.value)
	})
}

func (r memoryReader) ScanBack(from, to []byte, visit func(key, value []byte) bool) {
	r.tree.Descend(pair{key: to}, func(p pair) bool {
		return bytes.Compare(p.key, to) >= 0 || bytes.Compare(p.key, from) >= 0 && visit(p.key, p.value)
	})
}

type memoryTx struct {
	memoryReader
	commitHooks
}

func (t *memoryTx) Put(key, value []byte) { t.tree.Set(pair{key, value}) }
func (t *memoryTx) Delete(key []byte)     { t.tree.Delete(pair{key: key}) }

// commitHooks are the functions that an update passed to OnCommit.
type commitHooks []func()

func (h *commitHooks) OnCommit(fn func()) { *h = append(*h, fn) }

func (h *commitHooks) runAll() {
	for _, fn := range *h {
		fn()
	}
}
