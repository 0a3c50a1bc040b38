package embedded

import (
	"fmt"
	"sync"
	"time"
)

// A BlobEvent is a change of a blob, as Event Grid reports it.
type BlobEvent struct {
	Type        BlobEventType
	Container   string
	Blob        string
	ETag        string // quoted
	ContentType string
	Size        int64  // of a blob that was written
	Sequencer   string // 48 hexadecimal digits; of two events of a blob, the later one has the greater one
	Time        time.Time
}

// A BlobEventType says what has happened to a blob.
type BlobEventType string

// The types of events, as Event Grid names them.
const (
	BlobCreated BlobEventType = "Microsoft.Storage.BlobCreated"
	BlobDeleted BlobEventType = "Microsoft.Storage.BlobDeleted"
)

// changeNumbers numbers the changes of an account. The numbers ascend with its clock, so that they need not
// be stored: those of an account that is opened again are higher, unless its clock was set back to
// before the last deletion.
type changeNumbers struct {
	mu   sync.Mutex
	last int64
}

// startAfter makes the next numbers higher than those of the writes of blobs.
func (n *changeNumbers) startAfter(blobs []*version) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range blobs {
		n.last = max(n.last, v.Modified.UnixNano())
	}
}

// nextSequencer returns the sequencer of a change.
func (n *changeNumbers) nextSequencer(at time.Time) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = max(n.last+1, at.UnixNano())
	return fmt.Sprintf("%048X", n.last)
}

// reportChange reports a change of the blob that a call names. The caller holds the lock of the name.
func (a *Account) reportChange(typ BlobEventType, c *blobCall, v *version, at time.Time) {
	if a.options.Changed == nil {
		return
	}
	e := BlobEvent{
		Type: typ, Container: c.container, Blob: c.blob, ETag: v.ETag, ContentType: v.Headers["Content-Type"],
		Sequencer: a.changes.nextSequencer(at), Time: at,
	}
	if typ == BlobCreated {
		e.Size = v.size
	}
	a.options.Changed(e)
}
