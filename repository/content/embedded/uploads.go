package embedded

import (
	"hash/maphash"
	"net/http"
	"sync"
	"time"
)

// blockUploads are the blocks that have been put and not been committed, by the blob
// they are for. Writing a blob forgets all that were put for it.
type blockUploads struct {
	most  int64
	clock func() time.Time
	locks [64]sync.Mutex // guard the blocks of a blob; several blobs share one

	mu    sync.Mutex // taken last
	blobs map[string]*uploadBlob
	bytes int64 // of all blocks, and of those that are arriving
	count int   // of all blocks
	swept time.Time
}

const (
	maxBlocks   = 100_000   // in the account
	uploadLasts = time.Hour // after its last block; Azure gives a week
)

// An upload is the blocks for one blob, by their ids, which all have one length.
type uploadBlob struct {
	blocks  map[string]stagedBlock
	touched time.Time
}

// A block is a draft with its length.
type stagedBlock struct {
	draftContent
	size int64
}

func (u *blockUploads) lockOf(blob string) *sync.Mutex {
	return &u.locks[maphash.String(seed, blob)%uint64(len(u.locks))]
}

// reserveBytes makes room for a block of n bytes, which add or cancel takes up.
func (u *blockUploads) reserveBytes(n int64) error {
	u.sweepExpired()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes+n > u.most || u.count >= maxBlocks {
		return newBlobError(http.StatusServiceUnavailable, "ServerBusy",
			"%d blocks with %d bytes wait to be committed; there is room again as they are, or %s after the last of a blob", u.count, u.bytes, uploadLasts)
	}
	u.bytes += n
	u.count++
	return nil
}

// cancelReservation gives up what was reserved.
func (u *blockUploads) cancelReservation(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes -= n
	u.count--
}

// addBlock adds a block, for which room has been reserved, in place of another with
// its id.
func (u *blockUploads) addBlock(blob, id string, b stagedBlock) error {
	lock := u.lockOf(blob)
	lock.Lock()
	defer lock.Unlock()
	old, err := u.replaceBlock(blob, id, b)
	if err != nil {
		return err
	}
	if old.draftContent != nil {
		u.cancelReservation(old.size)
		old.discardDraft()
	}
	return nil
}

func (u *blockUploads) replaceBlock(blob, id string, b stagedBlock) (old stagedBlock, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.blobs == nil {
		u.blobs = map[string]*uploadBlob{}
	}
	up := u.blobs[blob]
	if up == nil {
		up = &uploadBlob{blocks: map[string]stagedBlock{}}
		u.blobs[blob] = up
	}
	for other := range up.blocks {
		if len(other) != len(id) {
			return stagedBlock{}, newBlobError(400, "InvalidBlobOrBlock", "the block ids of a blob all have one length")
		}
		break // they have
	}
	old = up.blocks[id]
	up.blocks[id] = b
	up.touched = u.clock()
	return old, nil
}

// commitBlocks calls write with the blocks of a blob. If that succeeds, they are gone.
func (u *blockUploads) commitBlocks(blob string, write func(map[string]stagedBlock) error) error {
	lock := u.lockOf(blob)
	lock.Lock()
	defer lock.Unlock()
	u.mu.Lock()
	var blocks map[string]stagedBlock // changes only under the lock that is held
	if up := u.blobs[blob]; up != nil {
		blocks = up.blocks
	}
	u.mu.Unlock()
	if err := write(blocks); err != nil {
		return err
	}
	u.forgetLocked(blob)
	return nil
}

// dropBlocks forgets the blocks of a blob.
func (u *blockUploads) dropBlocks(blob string) {
	lock := u.lockOf(blob)
	lock.Lock()
	defer lock.Unlock()
	u.forgetLocked(blob)
}

// forgetLocked is for whoever holds the lock of the blob.
func (u *blockUploads) forgetLocked(blob string) {
	u.mu.Lock()
	up := u.blobs[blob]
	delete(u.blobs, blob)
	u.mu.Unlock()
	if up == nil {
		return
	}
	for _, b := range up.blocks {
		u.cancelReservation(b.size)
		b.discardDraft()
	}
}

// sweepExpired forgets, now and then, blocks that nobody will commit any more.
func (u *blockUploads) sweepExpired() {
	const often = time.Minute
	now := u.clock()
	u.mu.Lock()
	var old []string
	if now.Sub(u.swept) > often {
		u.swept = now
		for blob, up := range u.blobs {
			if now.Sub(up.touched) > uploadLasts {
				old = append(old, blob)
			}
		}
	}
	u.mu.Unlock()
	for _, blob := range old {
		u.dropBlocks(blob)
	}
}

// clearAll forgets everything.
func (u *blockUploads) clearAll() {
	u.mu.Lock()
	var all []string
	for blob := range u.blobs {
		all = append(all, blob)
	}
	u.mu.Unlock()
	for _, blob := range all {
		u.dropBlocks(blob)
	}
}
