package embedded

import (
	"io"
	"net/http"
	"time"
)

// A version is the content of a blob with its properties. It is immutable. A container also has a version,
// without a name and without content.
type version struct {
	Name     string            `json:"name"`
	ETag     string            `json:"etag"`
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Headers  map[string]string `json:"headers,omitempty"` // values of storedHeaders
	MD5      []byte            `json:"md5,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`

	// Blocks is the list of the committed blocks, encoded by encodeBlocks. A folderStore keeps the list
	// only on disk; readBlocks returns it. BlocksLeftOut is true if the list was too long to be stored.
	Blocks        []byte `json:"blocks,omitempty"`
	BlocksLeftOut bool   `json:"blocksLeftOut,omitempty"`

	Copy *copyRecord `json:"copy,omitempty"` // copy that wrote the content, or nil

	Tier        string    `json:"tier,omitempty"` // "": the default tier
	TierChanged time.Time `json:"tierChanged,omitzero"`

	Service *serviceProperties `json:"service,omitempty"` // only for accountItself; otherwise nil

	size int64
	data []byte // content, in a memoryStore only
}

// setProperties sets the headers with the etag, the modification time and the metadata of v.
func (v *version) setProperties(h http.Header) {
	h.Set("ETag", v.ETag)
	h.Set("Last-Modified", v.Modified.UTC().Format(http.TimeFormat))
	for name, value := range v.Metadata {
		h[metadataPrefix+name] = []string{value} // Set would change the case of the name
	}
}

// A blobStore stores versions by container and name.
type blobStore interface {
	// loadAll calls found for every container with its blobs, and for accountItself if properties of the
	// account are stored.
	loadAll(found func(container string, properties *version, blobs []*version) error) error

	// newDraft starts a draft, which is invisible to readers. size is the announced size.
	newDraft(size int64) (draftContent, error)

	// makeContainer creates an empty container durably.
	makeContainer(container string, properties *version) error

	// removeContainer removes a container with its blobs durably and atomically. It may fail with an
	// unsettledError, as publishDraft does. After success, the caller calls cleanUp, which removes the
	// files of the container. cleanUp may take long and needs no locks.
	removeContainer(container string) (cleanUp func(), err error)

	// publishDraft durably makes d the content of v, replaces the previous version of v's name, and sets
	// v.size. The caller must not use d afterwards, even if publishDraft fails. After an unsettledError,
	// either version may exist after a power failure.
	publishDraft(container string, v *version, d draftContent) error

	// openContent returns the content of v, which must be the current version of its name.
	openContent(container string, v *version) (blobContent, error)

	// readBlocks returns the block list of v, which must be the current version of its name.
	readBlocks(container string, v *version) (blockList, error)

	// removeVersion removes a version durably. It may fail with an unsettledError: the version may or may
	// not exist after a power failure.
	removeVersion(container string, v *version) error

	closeStore() error
}

// An unsettledError reports a visible change on the disk that may not be durable.
type unsettledError struct{ error }

func (u unsettledError) Unwrap() error { return u.error }

// A draftContent is content that is being written.
type draftContent interface {
	io.Writer
	// finishWriting ends writing. The caller calls it once, after the last Write.
	finishWriting() error
	// openDraft returns the written content. The caller calls it after finishWriting.
	openDraft() (blobContent, error)
	// discardDraft removes the draft.
	discardDraft()
}

// blobContent is the content of a version. It remains readable until it is closed, even if the blob is
// overwritten or deleted.
type blobContent interface {
	io.ReaderAt
	io.Closer
}
