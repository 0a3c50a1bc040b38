package embedded

import (
	"io"
	"net/http"
	"time"
)

// A version is one content of a blob, with its properties. It is immutable. A container also
// has a version, without a name and content.
type version struct {
	Name     string            `json:"name"`
	ETag     string            `json:"etag"`
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Headers  map[string]string `json:"headers,omitempty"` // Content-Type and the like
	MD5      []byte            `json:"md5,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`

	// Blocks is the list of the committed blocks, by encodeBlocks. A folderStore keeps it only on
	// disk: readBlocks returns it. BlocksLeftOut reports that it did not fit there.
	Blocks        []byte `json:"blocks,omitempty"`
	BlocksLeftOut bool   `json:"blocksLeftOut,omitempty"`

	Copy *copyRecord `json:"copy,omitempty"` // copy that wrote the content, or nil

	Tier        string    `json:"tier,omitempty"` // "" is the default one
	TierChanged time.Time `json:"tierChanged,omitzero"`

	Service *serviceProperties `json:"service,omitempty"` // only of accountItself

	size int64
	data []byte // in memory only
}

// setProperties sets the headers of v's properties, except its length.
func (v *version) setProperties(h http.Header) {
	h.Set("ETag", v.ETag)
	h.Set("Last-Modified", v.Modified.UTC().Format(http.TimeFormat))
	for name, value := range v.Metadata {
		h[metadataPrefix+name] = []string{value} // Set would change the case of the name
	}
}

// A blobStore stores versions by container and name.
type blobStore interface {
	// loadAll calls found for every container with its blobs, and for accountItself if it has
	// properties.
	loadAll(found func(container string, properties *version, blobs []*version) error) error

	// newDraft starts a draft, which is invisible to readers. size is the announced size.
	newDraft(size int64) (draftContent, error)

	// makeContainer creates an empty container durably.
	makeContainer(container string, properties *version) error

	// removeContainer removes a container with its blobs durably, as one change. It may fail like
	// publishDraft. After success, cleanUp removes what takes long; the caller need not wait for
	// it with its locks held.
	removeContainer(container string) (cleanUp func(), err error)

	// publishDraft makes d the content of v durably, replaces any other version of its name,
	// and sets v's size. d must not be used afterwards, even if it fails. After an
	// unsettledError it is unknown which version a power failure would leave.
	publishDraft(container string, v *version, d draftContent) error

	// openContent returns the content of v, which must be the current version of its name.
	openContent(container string, v *version) (blobContent, error)

	// readBlocks returns the block list of v, which must be the current version of its name.
	readBlocks(container string, v *version) (blockList, error)

	// removeVersion removes the version of a name durably. It may fail like publishDraft.
	removeVersion(container string, v *version) error

	closeStore() error
}

// An unsettledError reports that the disk shows a change that may not be durable.
type unsettledError struct{ error }

func (u unsettledError) Unwrap() error { return u.error }

// A draftContent is content that is being written.
type draftContent interface {
	io.Writer
	// finishWriting ends writing. It is called once.
	finishWriting() error
	// openDraft returns the written content, after finishWriting.
	openDraft() (blobContent, error)
	// discardDraft removes the draft.
	discardDraft()
}

// blobContent is the content of a version. It stays readable until it is closed, even if the
// blob is overwritten.
type blobContent interface {
	io.ReaderAt
	io.Closer
}
