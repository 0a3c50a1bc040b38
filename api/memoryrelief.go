package api

import (
	"cmp"
	"slices"
	"time"
)

const (
	// stallLimit is the maximum time by which a client may fall behind the minimum rate while other
	// requests wait for memory. It decreases to minStallLimit as the queue fills, so that requests
	// are served in time during a flood of bodies that never end.
	stallLimit    = time.Second
	minStallLimit = 100 * time.Millisecond

	reliefInterval = 50 * time.Millisecond
)

// transfers measures how fast the client of one hold transfers bytes. The time between two
// transfers, in which the request works or waits for memory, does not count.
type transfers struct {
	since time.Time // start of the current transfer; zero if none exists
	lag   time.Duration
	moved int64
	took  time.Duration
}

func (t *transfers) begin(now time.Time) { t.since = now }

func (t *transfers) end(now time.Time, n int, rate int64) {
	took := now.Sub(t.since)
	earned := time.Duration(float64(n) / float64(rate) * float64(time.Second))
	t.lag = max(0, t.lag+took-earned)
	t.took += took
	t.moved += int64(n)
	t.since = time.Time{}
}

// isStalled reports whether the client is behind the minimum rate by limit or more.
func (t *transfers) isStalled(now time.Time, limit time.Duration) bool {
	return !t.since.IsZero() && t.lag+now.Sub(t.since) >= limit
}

// speed returns the average bytes per second.
func (t *transfers) speed(now time.Time) float64 {
	took := t.took
	if !t.since.IsZero() {
		took += now.Sub(t.since)
	}
	return float64(t.moved) / max(took.Seconds(), 1e-9)
}

// A memoryRelief chooses requests that fail, so that waiting requests can be served. It prefers
// stalled requests, then requests of the owner that uses most memory, then the slowest requests.
type memoryRelief struct {
	pool     *memoryPool
	now      time.Time
	fair     int64         // bytes of each owner if all owners had equal shares of the pool
	expected int64         // bytes that will remain in use after all interrupted holds are closed
	victims  []*memoryHold // holds that may be interrupted: stalled ones first, then the slowest
	stalled  map[*memoryHold]bool
}

// relieve disconnects clients, so that waiting requests can be served.
func (p *memoryPool) relieve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return
	}
	p.newRelief(time.Now()).run()
	p.grant() // the requests that were refused may have blocked others
	if p.relief != nil {
		p.relief.Reset(reliefInterval)
	}
}

func (p *memoryPool) newRelief(now time.Time) *memoryRelief {
	r := &memoryRelief{pool: p, now: now, fair: p.room / int64(len(p.owners)), stalled: make(map[*memoryHold]bool)}
	for _, o := range p.owners {
		o.expected = 0
	}
	limit := p.currentStallLimit()
	for h := range p.held {
		if h.cut {
			continue
		}
		r.expected += h.bytes
		h.owner.expected += h.bytes
		if h.bytes > 0 && (h.waiter != nil || !h.since.IsZero()) {
			r.victims = append(r.victims, h)
			r.stalled[h] = h.isStalled(now, limit)
		}
	}
	slices.SortFunc(r.victims, func(a, b *memoryHold) int {
		if r.stalled[a] != r.stalled[b] {
			if r.stalled[a] {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.speed(now), b.speed(now)), cmp.Compare(a.number, b.number))
	})
	return r
}

// currentStallLimit returns the stall limit for the current length of the queue.
func (p *memoryPool) currentStallLimit() time.Duration {
	fullness := float64(len(p.queue)) / (maxWaiting / 2)
	return max(p.stallTime, minStallLimit, time.Duration((1-fullness)*float64(stallLimit)))
}

// run frees memory for the waiting requests in fair order. It stops at the first request for which
// it cannot.
func (r *memoryRelief) run() {
	for _, w := range r.pool.fairOrder() {
		if w.hold.waiter != w {
			continue // the request was itself refused to free memory for another
		}
		o := w.hold.owner
		if !r.makeRoomInShare(w) {
			continue
		}
		for r.expected+w.bytes > r.pool.room {
			h := r.choose(w)
			if h == nil {
				r.breakDeadlock(nil)
				return
			}
			r.cut(h)
		}
		r.expected += w.bytes
		o.expected += w.bytes
	}
}

// makeRoomInShare reports whether w will fit into its owner's share. If cutsOwn is set, it
// disconnects stalled clients of this owner.
func (r *memoryRelief) makeRoomInShare(w *memoryWaiter) bool {
	o := w.hold.owner
	for _, h := range r.victims {
		if o.expected+w.bytes <= r.pool.share {
			break
		}
		if r.pool.cutsOwn && h.owner == o && r.stalled[h] && !h.cut {
			r.cut(h)
		}
	}
	if o.expected+w.bytes <= r.pool.share {
		return true
	}
	r.breakDeadlock(o)
	return false
}

// choose returns the request that fails so that w can be served, or nil. It usually considers only
// stalled clients of owners that use more than their fair part. If the owner of w uses less than
// its fair part, or has no other request, it considers stalled clients of all owners. If the owner
// of w uses less than its fair part, and w has waited for half of the timeout, it also considers
// all clients of owners that use more than their fair part.
func (r *memoryRelief) choose(w *memoryWaiter) *memoryHold {
	o := w.hold.owner
	isFair := o.expected+w.bytes <= r.fair
	isOnly := o.expected == w.hold.bytes
	isLate := r.now.Sub(w.since) >= r.pool.timeout/2
	var chosen *memoryHold
	for _, h := range r.victims {
		if h.cut || h == w.hold {
			continue
		}
		isGreedy := h.owner.expected > r.fair
		if r.stalled[h] && (isGreedy || isFair || isOnly) || isGreedy && isFair && isLate {
			if chosen == nil || r.stalled[h] == r.stalled[chosen] && h.owner.expected > chosen.owner.expected {
				chosen = h
			}
		}
	}
	return chosen
}

// breakDeadlock handles requests of owner o, or of all owners if o is nil. If all of them that hold
// memory wait for more, it refuses the newest of these.
func (r *memoryRelief) breakDeadlock(o *memoryOwner) {
	var newest *memoryHold
	for h := range r.pool.held {
		if h.bytes == 0 || o != nil && h.owner != o {
			continue
		}
		if h.waiter == nil {
			return
		}
		if newest == nil || h.number > newest.number {
			newest = h
		}
	}
	if newest != nil {
		r.cut(newest)
	}
}

// cut makes the request of h fail. If the request waits for memory, it is refused; otherwise its
// transfer is interrupted.
func (r *memoryRelief) cut(h *memoryHold) {
	h.cut = true
	h.owner.expected -= h.bytes
	r.expected -= h.bytes
	if h.waiter != nil {
		r.pool.dequeue(h.waiter, false)
		return
	}
	r.pool.onCut()
	h.interrupt()
}
