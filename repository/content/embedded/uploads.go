package embedded

import (
	"hash/maphash"
	"net/http"
	"sync"
	"time"
)

// uploads are the blocks that have been put and not been committed, by the blob
// they are for. Writing a blob forgets all that were put for it.
type uploads struct {
	most  int64
	clock func() time.Time
	locks [64]sync.Mutex // guard the blocks of a blob; several blobs share one

	mu    sync.Mutex // taken last
	blobs map[string]*upload
	bytes int64 // of all blocks, and of those that are arriving
	count int   // of all blocks
	swept time.Time
}

const (
	maxBlocks   = 100_000   // in the account
	uploadLasts = time.Hour // after its last block; Azure gives a week
)

// An upload is the blocks for one blob, by their ids, which all have one length.
type upload struct {
	blocks  map[string]block
	touched time.Time
}

// A block is a draft with its length.
type block struct {
	draft
	size int64
}

func (u *uploads) lock(blob string) *sync.Mutex {
	return &u.locks[maphash.String(seed, blob)%uint64(len(u.locks))]
}

// reserve makes room for a block of n bytes, which add or cancel takes up.
func (u *uploads) reserve(n int64) error {
	u.sweep()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes+n > u.most || u.count >= maxBlocks {
		return refuse(http.StatusServiceUnavailable, "ServerBusy",
			"%d blocks with %d bytes wait to be committed; there is room again as they are, or %s after the last of a blob", u.count, u.bytes, uploadLasts)
	}
	u.bytes += n
	u.count++
	return nil
}

// cancel gives up what was reserved.
func (u *uploads) cancel(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes -= n
	u.count--
}

// add adds a block, for which room has been reserved, in place of another with
// its id.
func (u *uploads) add(blob, id string, b block) error {
	lock := u.lock(blob)
	lock.Lock()
	defer lock.Unlock()
	old, err := u.replace(blob, id, b)
	if err != nil {
		return err
	}
	if old.draft != nil {
		u.cancel(old.size)
		old.discard()
	}
	return nil
}

func (u *uploads) replace(blob, id string, b block) (old block, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.blobs == nil {
		u.blobs = map[string]*upload{}
	}
	up := u.blobs[blob]
	if up == nil {
		up = &upload{blocks: map[string]block{}}
		u.blobs[blob] = up
	}
	for other := range up.blocks {
		if len(other) != len(id) {
			return block{}, refuse(400, "InvalidBlobOrBlock", "the block ids of a blob all have one length")
		}
		break // they have
	}
	old = up.blocks[id]
	up.blocks[id] = b
	up.touched = u.clock()
	return old, nil
}

// commit calls write with the blocks of a blob. If that succeeds, they are gone.
func (u *uploads) commit(blob string, write func(map[string]block) error) error {
	lock := u.lock(blob)
	lock.Lock()
	defer lock.Unlock()
	u.mu.Lock()
	var blocks map[string]block // changes only under the lock that is held
	if up := u.blobs[blob]; up != nil {
		blocks = up.blocks
	}
	u.mu.Unlock()
	if err := write(blocks); err != nil {
		return err
	}
	u.forget(blob)
	return nil
}

// drop forgets the blocks of a blob.
func (u *uploads) drop(blob string) {
	lock := u.lock(blob)
	lock.Lock()
	defer lock.Unlock()
	u.forget(blob)
}

// forget is for whoever holds the lock of the blob.
func (u *uploads) forget(blob string) {
	u.mu.Lock()
	up := u.blobs[blob]
	delete(u.blobs, blob)
	u.mu.Unlock()
	if up == nil {
		return
	}
	for _, b := range up.blocks {
		u.cancel(b.size)
		b.discard()
	}
}

// sweep forgets, now and then, blocks that nobody will commit any more.
func (u *uploads) sweep() {
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
		u.drop(blob)
	}
}

// clear forgets everything.
func (u *uploads) clear() {
	u.mu.Lock()
	var all []string
	for blob := range u.blobs {
		all = append(all, blob)
	}
	u.mu.Unlock()
	for _, blob := range all {
		u.drop(blob)
	}
}
