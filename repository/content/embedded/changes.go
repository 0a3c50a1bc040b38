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
	Size        int64  // size of a written blob
	Sequencer   string // 48 hexadecimal digits, which ascend for the events of a blob
	Time        time.Time
}

// A BlobEventType is the type of a BlobEvent.
type BlobEventType string

// The types of events, as Event Grid names them.
const (
	BlobCreated BlobEventType = "Microsoft.Storage.BlobCreated"
	BlobDeleted BlobEventType = "Microsoft.Storage.BlobDeleted"
)

// changeNumbers assigns ascending numbers to the changes of an account. The numbers follow the clock, so
// they need not be stored: after reopening, the next number is higher, unless the clock was set back to a
// time before the last deletion.
type changeNumbers struct {
	mu   sync.Mutex
	last int64
}

// startAfter makes the next numbers higher than the numbers of the stored blobs.
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

// reportChange calls Options.Changed for a change of the call's blob. The caller holds the lock of the
// blob's name.
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
