package api

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// maxWaiting is the maximum number of requests that wait for memory in one pool, and twice the
// maximum for one owner. Further requests are refused immediately, because even a waiting request
// takes some memory, which no pool counts.
const maxWaiting = 256

// A memoryWaiter is a request that waits for memory.
type memoryWaiter struct {
	hold    *memoryHold
	bytes   int64
	since   time.Time
	granted bool          // whether the request got its memory; valid after ready is closed
	ready   chan struct{} // closed when the request stops waiting
	rank    int64         // bytes of the owner that count before this request; set by fairOrder
}

// wait waits for n bytes, and reports whether the hold got them.
func (p *memoryPool) wait(ctx context.Context, h *memoryHold, n int64) bool {
	w := p.enqueue(h, n)
	if w == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	select {
	case <-w.ready:
	case <-ctx.Done():
		p.abandon(w)
	}
	return w.granted
}

// enqueue adds a request for n bytes to the queue. It returns nil if too many requests wait. If the
// queue is full, enqueue first refuses a request of an owner that has more waiting requests than
// the owner of h.
func (p *memoryPool) enqueue(h *memoryHold, n int64) *memoryWaiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.share || h.owner.waiting >= maxWaiting/2 {
		return nil
	}
	if len(p.queue) >= maxWaiting && !p.refuseNewest(h.owner.waiting+1) {
		return nil
	}
	w := &memoryWaiter{hold: h, bytes: n, since: time.Now(), ready: make(chan struct{})}
	h.waiter = w
	h.owner.waiting++
	p.queue = append(p.queue, w)
	if p.relief == nil {
		p.relief = time.AfterFunc(0, p.relieve)
	}
	p.grant()
	return w
}

// abandon removes w from the queue, if it is still there.
func (p *memoryPool) abandon(w *memoryWaiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.hold.waiter == w {
		p.dequeue(w, false)
		p.grant()
	}
}

// The following methods must be called with the pool locked.

// refuseNewest refuses the newest waiting request of the owner that has the most waiting requests.
// If no owner has more than limit waiting requests, it refuses none and returns false.
func (p *memoryPool) refuseNewest(limit int) bool {
	var newest *memoryWaiter
	for _, w := range p.queue {
		if newest == nil || w.hold.owner.waiting >= newest.hold.owner.waiting {
			newest = w
		}
	}
	if newest.hold.owner.waiting <= limit {
		return false
	}
	p.dequeue(newest, false)
	return true
}

// dequeue removes w from the queue and ends its wait.
func (p *memoryPool) dequeue(w *memoryWaiter, granted bool) {
	i := slices.Index(p.queue, w)
	p.queue = slices.Delete(p.queue, i, i+1)
	w.hold.owner.waiting--
	w.hold.waiter = nil
	w.granted = granted
	close(w.ready)
	if len(p.queue) == 0 && p.relief != nil {
		p.relief.Stop()
		p.relief = nil
	}
}

// hasTurn reports whether a new request of o may be served without queueing: no request of o waits,
// and each waiting request of another owner waits only for that owner's share.
func (p *memoryPool) hasTurn(o *memoryOwner) bool {
	for _, w := range p.queue {
		if w.hold.owner == o || p.isWithinShare(w.hold.owner, w.bytes) {
			return false
		}
	}
	return true
}

// grant serves waiting requests in fair order while memory is free. It skips requests that would
// exceed the share of their owner.
func (p *memoryPool) grant() {
	for _, w := range p.fairOrder() {
		if !p.isWithinShare(w.hold.owner, w.bytes) {
			continue
		}
		if p.used+w.bytes > p.room {
			return
		}
		p.add(w.hold, w.bytes)
		p.dequeue(w, true)
	}
}

// fairOrder returns the waiting requests in the order in which they are served: first by the bytes
// that their owner uses or has already requested, then by size, then by age.
func (p *memoryPool) fairOrder() []*memoryWaiter {
	if len(p.queue) == 0 {
		return nil
	}
	older := make(map[*memoryOwner]int64)
	for _, w := range p.queue {
		o := w.hold.owner
		w.rank = o.used + older[o]
		older[o] += w.bytes
	}
	order := slices.Clone(p.queue)
	slices.SortStableFunc(order, func(a, b *memoryWaiter) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.bytes, b.bytes))
	})
	return order
}
