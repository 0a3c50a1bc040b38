package api

import (
	"context"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A memoryPool limits the memory that requests hold while their clients send or read, in total and
// for each owner. If too little memory is free, a request waits up to timeout, and then fails with
// Busy. memoryqueue.go defines the order in which waiting requests are served. memoryrelief.go
// defines which clients are disconnected for their sake.
type memoryPool struct {
	memoryLimits
	room, share int64 // limits in bytes: of the pool, and of one owner

	mu     sync.Mutex
	used   int64
	owners map[string]*memoryOwner
	held   map[*memoryHold]struct{}
	queue  []*memoryWaiter // waiting requests in the order of their arrival
	relief *time.Timer     // calls relieve periodically while requests wait; nil if none waits
	opened uint64          // number of holds that were ever opened
}

// memoryLimits contains the options of a memoryPool.
type memoryLimits struct {
	timeout   time.Duration
	rate      int64         // bytes per second that a client has to transfer while others wait
	stallTime time.Duration // minimum of the stall limit
	full      string        // text of the Busy error
	onCut     func()        // counts disconnected clients; called with the pool locked

	// cutsOwn reports whether the pool may also disconnect a client for another request of the same
	// owner that waits for the owner's share. It is false if an owner is a single client, because
	// that client would only repeat the interrupted requests.
	cutsOwn bool
}

// A memoryOwner counts the bytes, the holds and the waiting requests of one owner.
type memoryOwner struct {
	name           string
	used           int64
	holds, waiting int
	expected       int64 // bytes that will remain in use after all interrupted holds are closed; only relieve uses it
}

// A memoryHold is the memory that one request holds.
type memoryHold struct {
	pool      *memoryPool
	owner     *memoryOwner
	number    uint64 // number of the hold, in the order of opening
	bytes     int64
	waiter    *memoryWaiter // the waiting request; nil if it does not wait
	interrupt func()        // interrupts the current transfer
	cut       bool          // whether the request was interrupted or refused, and is about to fail
	transfers
}

func newMemoryPool(room, share int64, limits memoryLimits) *memoryPool {
	return &memoryPool{
		memoryLimits: limits, room: room, share: min(share, room),
		owners: make(map[string]*memoryOwner), held: make(map[*memoryHold]struct{}),
	}
}

// newMemoryPools returns a pool for small requests and a pool for large requests. The pool for
// large requests has room bytes. The pool for small requests has a quarter of that in addition, but
// at least minSmallPool bytes.
func newMemoryPools(room, share int64, limits memoryLimits) (small, large *memoryPool) {
	smallRoom := max(room/4, minSmallPool)
	return newMemoryPool(smallRoom, max(share/4, smallRoom/4), limits), newMemoryPool(room, share, limits)
}

const minSmallPool = 8 * megabyte

// open returns an empty hold, which the caller must close. The pool may call interrupt during a
// transfer, from another goroutine.
func (p *memoryPool) open(owner string, interrupt func()) *memoryHold {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.owners[owner]
	if o == nil {
		o = &memoryOwner{name: owner}
		p.owners[owner] = o
	}
	o.holds++
	p.opened++
	h := &memoryHold{pool: p, owner: o, number: p.opened, interrupt: interrupt}
	p.held[h] = struct{}{}
	return h
}

// tryAcquire adds n bytes to the hold if they are free. It does not wait.
func (h *memoryHold) tryAcquire(n int64) bool {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hasTurn(h.owner) || !p.isWithinShare(h.owner, n) || p.used+n > p.room {
		return false
	}
	p.add(h, n)
	return true
}

// acquire adds n bytes to the hold. It waits until they are free, or fails with Busy.
func (h *memoryHold) acquire(ctx context.Context, n int64) error {
	if h.tryAcquire(n) || h.pool.wait(ctx, h, n) {
		return nil
	}
	return domain.Errorf(domain.Busy, "%s", h.pool.full)
}

// shrink reduces the hold to n bytes.
func (h *memoryHold) shrink(n int64) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if n < h.bytes {
		h.pool.add(h, n-h.bytes)
		h.pool.grant()
	}
}

// close releases all memory of the hold. The pool does not call interrupt afterwards.
func (h *memoryHold) close() {
	h.shrink(0)
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.held[h]; !open {
		return
	}
	delete(p.held, h)
	if h.owner.holds--; h.owner.holds == 0 {
		delete(p.owners, h.owner.name)
	}
}

// beginTransfer records that the request starts to wait for its client. It returns false if the
// pool has disconnected the client. A nil hold does nothing.
func (h *memoryHold) beginTransfer() bool {
	if h == nil {
		return true
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.begin(time.Now())
	return !h.cut
}

// endTransfer records that the client has sent or read n bytes. It returns false if the pool has
// interrupted the request, and perhaps moved the client's deadline into the past.
func (h *memoryHold) endTransfer(n int) bool {
	if h == nil {
		return true
	}
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	h.end(time.Now(), n, h.pool.rate)
	return !h.cut
}

// The following methods must be called with the pool locked.

func (p *memoryPool) add(h *memoryHold, n int64) {
	p.used += n
	h.bytes += n
	h.owner.used += n
}

func (p *memoryPool) isWithinShare(o *memoryOwner, n int64) bool { return o.used+n <= p.share }
