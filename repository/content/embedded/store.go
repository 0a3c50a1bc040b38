package embedded

import (
	"io"
	"net/http"
	"time"
)

// A version is a blob's content with its properties, or the properties of a container. It is immutable.
type version struct {
	Name     string            `json:"name"`
	ETag     string            `json:"etag"`
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Headers  map[string]string `json:"headers,omitempty"` // values of the headers that storedHeaders lists
	MD5      []byte            `json:"md5,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`

	// Blocks is the encoded list of committed blocks. A folderStore has it only on disk, where readBlocks reads it.
	// BlocksLeftOut is true if the list was too long to be stored.
	Blocks        []byte `json:"blocks,omitempty"`
	BlocksLeftOut bool   `json:"blocksLeftOut,omitempty"`

	Copy *copyRecord `json:"copy,omitempty"` // copy that created the content, or nil

	Tier        string    `json:"tier,omitempty"` // "" means the default tier
	TierChanged time.Time `json:"tierChanged,omitzero"`

	Service *serviceProperties `json:"service,omitempty"` // set only for accountItself

	size int64
	data []byte // content; set only by a memoryStore
}

// setProperties adds the etag, modification time and metadata of v to the headers h.
func (v *version) setProperties(h http.Header) {
	h.Set("ETag", v.ETag)
	h.Set("Last-Modified", v.Modified.UTC().Format(http.TimeFormat))
	for name, value := range v.Metadata {
		h[metadataPrefix+name] = []string{value} // http.Header.Set would change the case of the name
	}
}

// A blobStore stores versions by container and blob name.
type blobStore interface {
	// loadAll calls found for every container. If properties of the account are stored, it also calls found for
	// accountItself.
	loadAll(found func(container string, properties *version, blobs []*version) error) error

	// newDraft starts a draft, which readers do not see. size is the announced size of the content.
	newDraft(size int64) (draftContent, error)

	// makeContainer durably creates an empty container.
	makeContainer(container string, properties *version) error

	// removeContainer durably and atomically removes a container and its blobs. Like publishDraft, it may fail with an
	// unsettledError. If it succeeds, the caller must call cleanUp, which deletes the files. cleanUp may be slow and
	// needs no locks.
	removeContainer(container string) (cleanUp func(), err error)

	// publishDraft durably replaces the previous version of v's name with v, whose content is d. It sets v.size. The
	// caller must not use d afterwards, even after an error. If the error is an unsettledError, a power failure may
	// restore the previous version.
	publishDraft(container string, v *version, d draftContent) error

	// openContent opens the content of v, which must be current.
	openContent(container string, v *version) (blobContent, error)

	// readBlocks returns the block list of v, which must be current.
	readBlocks(container string, v *version) (blockList, error)

	// removeVersion durably removes a version. If it fails with an unsettledError, a power failure may restore the
	// version.
	removeVersion(container string, v *version) error

	closeStore() error
}

// An unsettledError reports a change that is visible but may not survive a power failure.
type unsettledError struct{ error }

func (u unsettledError) Unwrap() error { return u.error }

// A draftContent is blob content that is being written.
type draftContent interface {
	io.Writer
	// finishWriting ends writing. It must be called once, after the last Write.
	finishWriting() error
	// openDraft opens the content for reading. It must be called after finishWriting.
	openDraft() (blobContent, error)
	// discardDraft removes the draft.
	discardDraft()
}

// blobContent is the content of a version. It stays readable until it is closed, even if the blob is overwritten or
// deleted.
type blobContent interface {
	io.ReaderAt
	io.Closer
}
