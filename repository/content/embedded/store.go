package embedded

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// A version is one content of a blob, with its properties. It never changes.
// A container has one as well, without a name and without content.
type version struct {
	Name     string            `json:"name"`
	ETag     string            `json:"etag"`
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Headers  map[string]string `json:"headers,omitempty"` // Content-Type and the like
	MD5      []byte            `json:"md5,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`

	size int64
	data []byte // in memory only
}

// setProperties says in h what v is, but for its length.
func (v *version) setProperties(h http.Header) {
	h.Set("ETag", v.ETag)
	h.Set("Last-Modified", v.Modified.UTC().Format(http.TimeFormat))
	for name, value := range v.Metadata {
		h.Set("X-Ms-Meta-"+name, value)
	}
}

// A store keeps versions, by container and name.
type blobStore interface {
	// loadAll tells of every container and all that is in it.
	loadAll(found func(container string, properties *version, blobs []*version) error) error

	// newDraft begins a content that nobody sees yet, which is said to have some size.
	newDraft(size int64) (draftContent, error)

	// makeContainer makes an empty container, durably.
	makeContainer(container string, properties *version) error

	// publishDraft makes d the content of v, in place of any other version of its
	// name, durably, and sets v's size. Either way d is used up. If it fails with
	// an unsettled error, nobody knows which version a power failure would leave.
	publishDraft(container string, v *version, d draftContent) error

	// openContent returns the content of v, which must be the version of its name.
	openContent(container string, v *version) (blobContent, error)

	// removeVersion removes the version of a name, durably. It may fail like publish.
	removeVersion(container string, v *version) error

	closeStore() error
}

// An unsettled error says that the disk shows a change that may not be durable.
type unsettledError struct{ error }

func (u unsettledError) Unwrap() error { return u.error }

// A draft is content that is being written.
type draftContent interface {
	io.Writer
	// finishWriting says that all is written. It is called once.
	finishWriting() error
	// openDraft returns what was written, after done.
	openDraft() (blobContent, error)
	// discardDraft removes it.
	discardDraft()
}

// blobContent is read by whoever closes it, though its blob be overwritten.
type blobContent interface {
	io.ReaderAt
	io.Closer
}

// memoryStore keeps nothing itself: versions carry their content.
type memoryStore struct{}

func (memoryStore) loadAll(func(string, *version, []*version) error) error { return nil }

func (memoryStore) newDraft(size int64) (draftContent, error) {
	const most = 4 << 20 // taken before anything has come
	d := new(memoryDraft)
	d.Grow(int(min(size, most)))
	return d, nil
}

func (memoryStore) makeContainer(string, *version) error { return nil }

func (memoryStore) publishDraft(_ string, v *version, d draftContent) error {
	v.data = d.(*memoryDraft).Bytes()
	v.size = int64(len(v.data))
	return nil
}

func (memoryStore) openContent(_ string, v *version) (blobContent, error) {
	return memoryContent{bytes.NewReader(v.data)}, nil
}

func (memoryStore) removeVersion(string, *version) error { return nil }

func (memoryStore) closeStore() error { return nil }

type memoryDraft struct{ bytes.Buffer }

func (*memoryDraft) finishWriting() error { return nil }

func (d *memoryDraft) openDraft() (blobContent, error) {
	return memoryContent{bytes.NewReader(d.Bytes())}, nil
}

func (*memoryDraft) discardDraft() {}

type memoryContent struct{ *bytes.Reader }

func (memoryContent) Close() error { return nil }
