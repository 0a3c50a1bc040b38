package api

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// maxWaiting is the maximum number of requests that wait for room in one pool,
// and half of it the maximum for one owner. Further requests are refused at
// once, because each waiting one takes memory that no pool counts.
const maxWaiting = 256

// A memoryWaiter is a request that waits for room.
type memoryWaiter struct {
	hold    *memoryHold
	bytes   int64
	since   time.Time
	granted bool          // set when ready is closed
	ready   chan struct{} // closed: the request waits no longer
	rank    int64         // set by fairOrder
}

// wait waits for n bytes and returns whether the hold got them.
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

// enqueue returns nil if too many requests wait already. If the queue is full, a request
// of an owner with more waiting requests makes room for h.
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

// abandon removes w from the queue, unless it has been served meanwhile.
func (p *memoryPool) abandon(w *memoryWaiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.hold.waiter == w {
		p.dequeue(w, false)
		p.grant()
	}
}

// The methods below are called with the pool locked.

// refuseNewest refuses the newest waiting request of the owner with the most
// waiting requests, if that owner has more than limit.
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

// dequeue ends the waiting of w.
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

// hasTurn reports whether a new request of o would overtake no waiting request.
func (p *memoryPool) hasTurn(o *memoryOwner) bool {
	for _, w := range p.queue {
		if w.hold.owner == o || p.isWithinShare(w.hold.owner, w.bytes) {
			return false
		}
	}
	return true
}

// grant serves waiting requests as long as there is room. A request that waits in the
// share of its owner does not hold up the others.
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

// fairOrder returns the waiting requests in the order in which they are served: by the
// bytes that the owner uses and will use for its older requests, then by size, then by age.
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
