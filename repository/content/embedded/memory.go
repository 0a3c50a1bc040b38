package embedded

import (
	"bytes"
	"net/http"
	"sync"
)

// A memoryStore stores blobs in memory. It limits the total size of blobs and drafts, including uncommitted blocks. The
// contents are in the data field of versions.
type memoryStore struct {
	maxBytes int64

	mu    sync.Mutex
	bytes int64
	sizes map[string]map[string]int64 // sizes of blobs, by container and blob name
}

func newMemoryStore(maxBytes int64) *memoryStore {
	return &memoryStore{maxBytes: maxBytes, sizes: map[string]map[string]int64{}}
}

func (*memoryStore) loadAll(func(string, *version, []*version) error) error { return nil }

// reserveBytes reserves n bytes for a draft.
func (s *memoryStore) reserveBytes(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.maxBytes-s.bytes {
		return newBlobError(http.StatusInsufficientStorage, "InsufficientStorage",
			"the account in memory holds %d bytes, and its limit is %d; delete blobs, commit blocks, or keep the account in a folder", s.bytes, s.maxBytes)
	}
	s.bytes += n
	return nil
}

// releaseBytes releases n bytes that were reserved.
func (s *memoryStore) releaseBytes(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= n
}

func (s *memoryStore) newDraft(size int64) (draftContent, error) {
	const maxInitial = 4 << 20 // maximum capacity that is allocated in advance
	d := &memoryDraft{store: s}
	d.data.Grow(int(min(size, maxInitial)))
	return d, nil
}

func (*memoryStore) makeContainer(string, *version) error { return nil }

func (s *memoryStore) removeContainer(container string) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, size := range s.sizes[container] {
		s.bytes -= size
	}
	delete(s.sizes, container)
	return func() {}, nil
}

func (s *memoryStore) publishDraft(container string, v *version, d draftContent) error {
	v.data = d.(*memoryDraft).data.Bytes()
	v.size = int64(len(v.data))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes[container] == nil {
		s.sizes[container] = map[string]int64{}
	}
	s.bytes -= s.sizes[container][v.Name]
	s.sizes[container][v.Name] = v.size
	return nil
}

func (*memoryStore) openContent(_ string, v *version) (blobContent, error) {
	return memoryContent{bytes.NewReader(v.data)}, nil
}

func (*memoryStore) readBlocks(_ string, v *version) (blockList, error) { return listOf(v) }

func (s *memoryStore) removeVersion(container string, v *version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= s.sizes[container][v.Name]
	delete(s.sizes[container], v.Name)
	return nil
}

func (*memoryStore) closeStore() error { return nil }

// A memoryDraft is a draft in memory. It reserves its bytes when they are written.
type memoryDraft struct {
	store *memoryStore
	data  bytes.Buffer
}

// Write implements [io.Writer].
func (d *memoryDraft) Write(p []byte) (int, error) {
	if err := d.store.reserveBytes(int64(len(p))); err != nil {
		return 0, err
	}
	return d.data.Write(p)
}

func (*memoryDraft) finishWriting() error { return nil }

func (d *memoryDraft) openDraft() (blobContent, error) {
	return memoryContent{bytes.NewReader(d.data.Bytes())}, nil
}

// discardDraft releases the reserved bytes. Further calls have no effect.
func (d *memoryDraft) discardDraft() {
	d.store.releaseBytes(int64(d.data.Len()))
	d.data = bytes.Buffer{}
}

type memoryContent struct{ *bytes.Reader }

func (memoryContent) Close() error { return nil }
