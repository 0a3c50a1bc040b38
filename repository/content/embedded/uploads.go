package embedded

import (
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// blockUploads contains the uncommitted blocks of all blobs. Writing a blob drops its uncommitted blocks.
type blockUploads struct {
	maxBytes int64
	clock    func() time.Time
	locks    [64]sync.Mutex // guard the blocks of each blob; several blobs share a lock

	mu    sync.Mutex                // guards the fields below; must be locked after one of locks
	blobs map[string]*pendingUpload // by uploadKey
	bytes int64                     // bytes of all blocks, including those that are being received
	count int                       // number of all blocks, including those that are being received
	swept time.Time                 // time of the last sweep
}

const (
	maxBlocks   = 100_000   // maximum number of uncommitted blocks in the account
	uploadLasts = time.Hour // how long the blocks of a blob are retained after the last block; a week on Azure
)

// A pendingUpload contains the uncommitted blocks of one blob, by id. All ids have the same length.
type pendingUpload struct {
	blocks  map[string]stagedBlock
	touched time.Time // time at which the last block was added
}

// A stagedBlock is the draft of an uncommitted block, with its length.
type stagedBlock struct {
	draftContent
	size int64
}

func (u *blockUploads) lockOf(blob string) *sync.Mutex {
	return &u.locks[maphash.String(seed, blob)%uint64(len(u.locks))]
}

// reserveBytes reserves n bytes for one block. The caller must then call addBlock or cancelReservation.
func (u *blockUploads) reserveBytes(n int64) error {
	u.sweepExpired()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes+n > u.maxBytes || u.count >= maxBlocks {
		return newBlobError(http.StatusServiceUnavailable, "ServerBusy",
			"%d blocks with %d bytes are not committed, which is the limit; commit them, or wait until %s after the last block of a blob", u.count, u.bytes, uploadLasts)
	}
	u.bytes += n
	u.count++
	return nil
}

// cancelReservation releases n bytes that were reserved for a block.
func (u *blockUploads) cancelReservation(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes -= n
	u.count--
}

// addBlock adds a block whose bytes were reserved. It replaces a block with the same id.
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
		u.blobs = map[string]*pendingUpload{}
	}
	up := u.blobs[blob]
	if up == nil {
		up = &pendingUpload{blocks: map[string]stagedBlock{}}
		u.blobs[blob] = up
	}
	for other := range up.blocks {
		if len(other) != len(id) {
			return stagedBlock{}, newBlobError(400, "InvalidBlobOrBlock", "the block ids of a blob all have one length")
		}
		break // checking one id suffices, because all have the same length
	}
	old = up.blocks[id]
	up.blocks[id] = b
	up.touched = u.clock()
	return old, nil
}

// commitBlocks calls write with the blocks of a blob. If write succeeds, it drops the blocks.
func (u *blockUploads) commitBlocks(blob string, write func(map[string]stagedBlock) error) error {
	lock := u.lockOf(blob)
	lock.Lock()
	defer lock.Unlock()
	u.mu.Lock()
	var blocks map[string]stagedBlock // blocks cannot change while the lock of the blob is held
	if up := u.blobs[blob]; up != nil {
		blocks = up.blocks
	}
	u.mu.Unlock()
	if err := write(blocks); err != nil {
		return err
	}
	u.dropLocked(blob)
	return nil
}

// listBlocks returns the ids and sizes of a blob's uncommitted blocks, sorted by id.
func (u *blockUploads) listBlocks(blob string) []committedBlock {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []committedBlock
	if up := u.blobs[blob]; up != nil {
		for id, b := range up.blocks {
			list = append(list, committedBlock{id: id, size: b.size})
		}
	}
	slices.SortFunc(list, func(a, b committedBlock) int { return strings.Compare(a.id, b.id) })
	return list
}

// listBlobs returns the blobs of a container that have uncommitted blocks, each with the time of its last block. prefix
// is the prefix of the container's upload keys.
func (u *blockUploads) listBlobs(prefix string) map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	listed := map[string]time.Time{}
	for key, up := range u.blobs {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			listed[name] = up.touched
		}
	}
	return listed
}

// dropContainer drops the uncommitted blocks of all blobs in a container. key is the key of the container.
func (u *blockUploads) dropContainer(key string) {
	u.mu.Lock()
	var all []string
	for blob := range u.blobs {
		if strings.HasPrefix(blob, key+"/") {
			all = append(all, blob)
		}
	}
	u.mu.Unlock()
	for _, blob := range all {
		u.dropBlocks(blob)
	}
}

// dropBlocks drops the uncommitted blocks of a blob.
func (u *blockUploads) dropBlocks(blob string) {
	lock := u.lockOf(blob)
	lock.Lock()
	defer lock.Unlock()
	u.dropLocked(blob)
}

// dropLocked drops the uncommitted blocks of a blob whose lock the caller holds.
func (u *blockUploads) dropLocked(blob string) {
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

// sweepExpired drops expired blocks, at most once a minute.
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

// clearAll drops all uncommitted blocks.
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
