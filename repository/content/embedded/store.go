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
type store interface {
	// load tells of every container and all that is in it.
	load(found func(container string, properties *version, blobs []*version) error) error

	// draft begins a content that nobody sees yet, which is said to have some size.
	draft(size int64) (draft, error)

	// makeContainer makes an empty container, durably.
	makeContainer(container string, properties *version) error

	// publish makes d the content of v, in place of any other version of its
	// name, durably, and sets v's size. Either way d is used up. If it fails with
	// an unsettled error, nobody knows which version a power failure would leave.
	publish(container string, v *version, d draft) error

	// open returns the content of v, which must be the version of its name.
	open(container string, v *version) (content, error)

	// remove removes the version of a name, durably. It may fail like publish.
	remove(container string, v *version) error

	close() error
}

// An unsettled error says that the disk shows a change that may not be durable.
type unsettled struct{ error }

func (u unsettled) Unwrap() error { return u.error }

// A draft is content that is being written.
type draft interface {
	io.Writer
	// done says that all is written. It is called once.
	done() error
	// open returns what was written, after done.
	open() (content, error)
	// discard removes it.
	discard()
}

// content is read by whoever closes it, though its blob be overwritten.
type content interface {
	io.ReaderAt
	io.Closer
}

// memory keeps nothing itself: versions carry their content.
type memory struct{}

func (memory) load(func(string, *version, []*version) error) error { return nil }

func (memory) draft(size int64) (draft, error) {
	const most = 4 << 20 // taken before anything has come
	d := new(memoryDraft)
	d.Grow(int(min(size, most)))
	return d, nil
}

func (memory) makeContainer(string, *version) error { return nil }

func (memory) publish(_ string, v *version, d draft) error {
	v.data = d.(*memoryDraft).Bytes()
	v.size = int64(len(v.data))
	return nil
}

func (memory) open(_ string, v *version) (content, error) {
	return memoryContent{bytes.NewReader(v.data)}, nil
}

func (memory) remove(string, *version) error { return nil }

func (memory) close() error { return nil }

type memoryDraft struct{ bytes.Buffer }

func (*memoryDraft) done() error { return nil }

func (d *memoryDraft) open() (content, error) { return memoryContent{bytes.NewReader(d.Bytes())}, nil }

func (*memoryDraft) discard() {}

type memoryContent struct{ *bytes.Reader }

func (memoryContent) Close() error { return nil }
