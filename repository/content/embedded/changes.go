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
	Size        int64  // size of the blob, if it was written
	Sequencer   string // 48 hexadecimal digits; a blob's later events have greater ones
	Time        time.Time
}

// A BlobEventType is the type of a BlobEvent.
type BlobEventType string

// The types of events, as Event Grid names them.
const (
	BlobCreated BlobEventType = "Microsoft.Storage.BlobCreated"
	BlobDeleted BlobEventType = "Microsoft.Storage.BlobDeleted"
)

// changeNumbers assigns increasing numbers to the changes of an account. The numbers follow the clock, so they need not
// be stored. After the account is reopened, they increase unless the clock was set back to before the last deletion.
type changeNumbers struct {
	mu   sync.Mutex
	last int64
}

// startAfter makes the next number higher than the numbers of all stored blobs.
func (n *changeNumbers) startAfter(blobs []*version) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range blobs {
		n.last = max(n.last, v.Modified.UnixNano())
	}
}

// nextSequencer returns the sequencer for a change at the given time.
func (n *changeNumbers) nextSequencer(at time.Time) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = max(n.last+1, at.UnixNano())
	return fmt.Sprintf("%048X", n.last)
}

// reportChange calls Options.Changed for a change of the call's blob. The caller must hold the lock of the blob.
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
