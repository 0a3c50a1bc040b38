package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A memoryPool bounds the memory that requests hold while their clients send or read,
// in all and for each owner. A request that finds no room waits up to timeout, and then
// fails with Busy. Requests are served in their order, except that one whose owner has
// used up its share does not hold up the others.
//
// While a request waits, the pool cuts off clients that have moved no byte for
// stallLimit: a client may be slow, but not at the expense of the others.
type memoryPool struct {
	room    int64 // bytes in all
	share   int64 // bytes of one owner
	waiting int   // requests that may wait; for one owner half of them
	timeout time.Duration
	full    string // the text of the error
	onCut   func() // for metrics; called with the pool locked

	// cutsOwn makes the pool cut off clients of an owner also while another request
	// waits in the same owner's share. It is not set where an owner is one client: the
	// client would only repeat the requests that were cut off.
	cutsOwn bool

	mu     sync.Mutex
	used   int64
	owners map[string]*memoryOwner
	held   map[*memoryHold]struct{}
	queue  []*memoryWaiter
	relief *time.Timer // set while requests wait
	holds  uint64      // that were begun
}

// A memoryOwner counts the bytes, the holds and the waiting requests of one owner.
type memoryOwner struct{ used, holds, waiting int64 }

// A memoryHold is the memory of one request.
type memoryHold struct {
	pool      *memoryPool
	owner     string
	number    uint64 // in the order of their beginnings
	bytes     int64
	interrupt func()    // ends the transfer under way
	since     time.Time // when the transfer under way began; zero: there is none
}

type memoryWaiter struct {
	hold  *memoryHold
	bytes int64
	ready chan struct{} // closed: it has them
}

const (
	// stallLimit is how long a transfer may stand still while others wait for memory. It
	// falls to minStallLimit as the queue of an owner fills up: beside a flood of bodies
	// that never end, others still get their turn.
	stallLimit    = time.Second
	minStallLimit = 100 * time.Millisecond

	// maxWaiting is how many requests wait for room in one pool. More are refused at
	// once, because each of them takes memory that no pool counts.
	maxWaiting = 256
)

func newMemoryPool(room, share int64, timeout time.Duration, full string, onCut func()) *memoryPool {
	return &memoryPool{
		room: room, share: min(share, room), waiting: maxWaiting, timeout: timeout, full: full, onCut: onCut,
		owners: make(map[string]*memoryOwner), held: make(map[*memoryHold]struct{}),
	}
}

// newMemoryPools returns the pool for what takes little and the one for the rest. The
// former has a quarter of the room besides, and minSmallPool at least.
func newMemoryPools(room, share int64, timeout time.Duration, full string, onCut func()) (small, large *memoryPool) {
	smallRoom := max(room/4, minSmallPool)
	return newMemoryPool(smallRoom, max(share/4, smallRoom/4), timeout, full, onCut), newMemoryPool(room, share, timeout, full, onCut)
}

const minSmallPool = 8 * megabyte

// open returns a hold of nothing, which the caller closes. The pool may call interrupt
// during a transfer, from another goroutine.
func (p *memoryPool) open(owner string, interrupt func()) *memoryHold {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds++
	h := &memoryHold{pool: p, owner: owner, number: p.holds, interrupt: interrupt}
	p.held[h] = struct{}{}
	o := p.owners[owner]
	if o == nil {
		o = &memoryOwner{}
		p.owners[owner] = o
	}
	o.holds++
	return h
}

// tryAcquire adds n bytes to the hold if there is room for them now.
func (h *memoryHold) tryAcquire(n int64) bool {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.hasTurn(h.owner) || !p.fits(h.owner, n) {
		return false
	}
	p.add(h, n)
	return true
}

// acquire adds n bytes to the hold. It waits for room, or fails with Busy.
func (h *memoryHold) acquire(ctx context.Context, n int64) error {
	p := h.pool
	if h.tryAcquire(n) {
		return nil
	}
	w := p.enqueue(h, n)
	if w == nil {
		return domain.Errorf(domain.Busy, "%s", p.full)
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	select {
	case <-w.ready:
	case <-ctx.Done():
		if !p.abandon(w) {
			return domain.Errorf(domain.Busy, "%s", p.full)
		}
	}
	return nil
}

// shrink gives back what the hold has beyond n bytes.
func (h *memoryHold) shrink(n int64) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if n < h.bytes {
		h.pool.add(h, n-h.bytes)
		h.pool.grant()
	}
}

// close gives back all that the hold has. The pool does not call interrupt afterwards.
func (h *memoryHold) close() {
	h.shrink(0)
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.held[h]; !open {
		return
	}
	delete(p.held, h)
	o := p.owners[h.owner]
	if o.holds--; o.holds == 0 {
		delete(p.owners, h.owner)
	}
}

// beginTransfer records that the request waits for its client from now on. On a nil
// hold it does nothing.
func (h *memoryHold) beginTransfer() { h.transfer(time.Now()) }

// endTransfer records that the client has sent or read bytes.
func (h *memoryHold) endTransfer() { h.transfer(time.Time{}) }

func (h *memoryHold) transfer(since time.Time) {
	if h == nil {
		return
	}
	h.pool.mu.Lock()
	h.since = since
	h.pool.mu.Unlock()
}

// The methods below are called with the pool locked.

func (p *memoryPool) add(h *memoryHold, n int64) {
	p.used += n
	h.bytes += n
	p.owners[h.owner].used += n
}

func (p *memoryPool) fits(owner string, n int64) bool {
	return p.used+n <= p.room && p.owners[owner].used+n <= p.share
}

// hasTurn reports whether no request waits that a new one of owner must not overtake.
func (p *memoryPool) hasTurn(owner string) bool {
	for _, w := range p.queue {
		if w.hold.owner == owner || p.isWithinShare(w) {
			return false
		}
	}
	return true
}

// isWithinShare reports whether w waits for room among all, not in its owner's share.
func (p *memoryPool) isWithinShare(w *memoryWaiter) bool {
	return p.owners[w.hold.owner].used+w.bytes <= p.share
}

// grant serves waiting requests as long as there is room.
func (p *memoryPool) grant() {
	kept := p.queue[:0]
	blocked := false
	for _, w := range p.queue {
		if !blocked && p.fits(w.hold.owner, w.bytes) {
			p.add(w.hold, w.bytes)
			p.owners[w.hold.owner].waiting--
			close(w.ready)
			continue
		}
		blocked = blocked || p.isWithinShare(w)
		kept = append(kept, w)
	}
	clear(p.queue[len(kept):])
	p.queue = kept
	if len(kept) == 0 && p.relief != nil {
		p.relief.Stop()
		p.relief = nil
	}
}

// currentStallLimit returns the stallLimit for the length of the queue.
func (p *memoryPool) currentStallLimit() time.Duration {
	fullness := float64(len(p.queue)) / float64(p.waiting/2)
	return max(minStallLimit, time.Duration((1-fullness)*float64(stallLimit)))
}

// cutStalled cuts off clients that have stood still for the stall limit, those that have
// done so the longest first, until there will be room for all requests that wait.
func (p *memoryPool) cutStalled(now time.Time) {
	var stalled []*memoryHold
	limit := p.currentStallLimit()
	for h := range p.held {
		if !h.since.IsZero() && h.bytes > 0 && now.Sub(h.since) >= limit {
			stalled = append(stalled, h)
		}
	}
	slices.SortFunc(stalled, func(a, b *memoryHold) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.number, b.number))
	})
	for _, w := range p.queue {
		own := !p.isWithinShare(w) // only its owner's memory helps it
		if own && !p.cutsOwn {
			continue
		}
		for i, needed := 0, w.bytes; i < len(stalled) && needed > 0; i++ {
			h := stalled[i]
			if h.since.IsZero() || own && h.owner != w.hold.owner {
				continue
			}
			needed -= h.bytes
			h.since = time.Time{} // it is cut once
			p.onCut()
			h.interrupt()
		}
	}
}

// The methods below lock the pool themselves.

// enqueue returns nil if too many requests wait already.
func (p *memoryPool) enqueue(h *memoryHold, n int64) *memoryWaiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.owners[h.owner]
	if n > p.share || len(p.queue) >= p.waiting || o.waiting >= int64(p.waiting)/2 {
		return nil
	}
	o.waiting++
	w := &memoryWaiter{hold: h, bytes: n, ready: make(chan struct{})}
	p.queue = append(p.queue, w)
	if p.relief == nil {
		p.relief = time.AfterFunc(0, p.relieve)
	}
	p.grant() // room may have come since tryAcquire
	return w
}

// abandon reports whether w got its bytes after all, and takes it from the queue if not.
func (p *memoryPool) abandon(w *memoryWaiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, x := range p.queue {
		if x == w {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			p.owners[w.hold.owner].waiting--
			p.grant()
			return false
		}
	}
	return true
}

// relieve cuts off stalled clients as long as requests wait.
func (p *memoryPool) relieve() {
	const pause = 50 * time.Millisecond
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return
	}
	p.cutStalled(time.Now())
	if p.relief != nil {
		p.relief.Reset(pause)
	}
}
