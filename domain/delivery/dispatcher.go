package delivery

import (
	"slices"
	"sync"
)

// A dispatcher gives the workers to the cursors that have something to call.
type dispatcher struct {
	workers int
	random  func() uint64
	grant   func(*permit)

	mu       sync.Mutex
	healthy  int // permits of receivers that are no suspects
	suspects int // permits of suspects, and calls that have taken long
	queues   []queue
	idle     int   // queues without a permit
	plan     []int // the queues of the next picks
	rotation int   // the queue that is the next one in rotation
	closed   bool
}

// A queue has the cursors with a delivery that failed as many times as its number.
type queue struct {
	running int           // permits
	ready   [2][]*service // in turn: healthy receivers, and suspects
	last    int           // of ready, that was picked from
}

// A permit is the right of a cursor to one call. A worker serves it, unless more than half of
// the workers would serve suspects.
type permit struct {
	service *service
	queue   int
	suspect bool // guarded by dispatcher.mu
	ended   bool // guarded by dispatcher.mu
}

// An offered cursor is in up to two queues: that of its fresh deliveries, and that of its
// next retry. dispatcher.mu guards its offers.
type offers struct {
	queued  [2]bool
	queues  [2]int // of those that are queued
	suspect bool   // a call takes long, or the last one failed or took long
}

func newDispatcher(workers, queues int, random func() uint64, grant func(*permit)) *dispatcher {
	return &dispatcher{workers: workers, queues: make([]queue, queues), idle: queues, random: random, grant: grant}
}

// queueOf returns the queue of a delivery that failed some times.
func (d *dispatcher) queueOf(attempts int) int { return min(attempts, len(d.queues)-1) }

// slotOf returns which of the two offers of a cursor is that of a queue.
func slotOf(queue int) int { return min(queue, 1) }

// kind returns which of the two lists of a queue a cursor is in.
func (o *offers) kind() int {
	if o.suspect {
		return 1
	}
	return 0
}

// offer puts a cursor at the end of a queue, unless it is offered already.
func (d *dispatcher) offer(s *service, queue int) {
	d.mu.Lock()
	o := &s.offers
	if slot := slotOf(queue); !o.queued[slot] && !d.closed {
		o.queued[slot], o.queues[slot] = true, queue
		ready := &d.queues[queue].ready[o.kind()]
		*ready = append(*ready, s)
	}
	granted := d.pick()
	d.mu.Unlock()
	d.send(granted)
}

// setSuspect notes whether the receiver of a cursor is a suspect. Its offers follow.
func (d *dispatcher) setSuspect(s *service, suspect bool) {
	d.mu.Lock()
	if s.offers.suspect == suspect {
		d.mu.Unlock()
		return
	}
	d.moveOffers(s, suspect)
	granted := d.pick()
	d.mu.Unlock()
	d.send(granted)
}

// moveOffers is setSuspect without a pick. The caller holds mu.
func (d *dispatcher) moveOffers(s *service, suspect bool) {
	o := &s.offers
	if o.suspect == suspect {
		return
	}
	before := o.kind()
	o.suspect = suspect
	for slot, isQueued := range o.queued {
		if !isQueued || d.closed {
			continue
		}
		ready := &d.queues[o.queues[slot]].ready
		i := slices.Index(ready[before], s)
		ready[before] = slices.Delete(ready[before], i, i+1)
		ready[o.kind()] = append(ready[o.kind()], s)
	}
}

// slow notes that a call takes long, as those of a receiver that hangs. It counts as one of a
// suspect from now on.
func (d *dispatcher) slow(p *permit) {
	d.mu.Lock()
	if !p.ended {
		d.moveOffers(p.service, true)
		if !p.suspect {
			p.suspect = true
			d.healthy--
			d.suspects++
		}
	}
	granted := d.pick()
	d.mu.Unlock()
	d.send(granted)
}

// release returns a permit.
func (d *dispatcher) release(p *permit) {
	d.mu.Lock()
	p.ended = true
	if d.queues[p.queue].running--; d.queues[p.queue].running == 0 {
		d.idle++
	}
	if p.suspect {
		d.suspects--
	} else {
		d.healthy--
	}
	granted := d.pick()
	d.mu.Unlock()
	d.send(granted)
}

// maxSuspects is the limit for the workers of suspects: half of all. Calls beyond it began
// before they took long, and need no worker: else receivers that begin to hang at the same time
// would keep all workers until their calls have timed out.
func (d *dispatcher) maxSuspects() int { return max(d.workers/2, 1) }

// free returns how many workers have no call.
func (d *dispatcher) free() int { return d.workers - d.healthy - min(d.suspects, d.maxSuspects()) }

// close ends the grants.
func (d *dispatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for q := range d.queues {
		d.queues[q].ready = [2][]*service{}
	}
}

func (d *dispatcher) send(all []*permit) {
	for _, p := range all {
		d.grant(p)
	}
}

// pick gives free workers to cursors, as long as there are both. The caller holds mu.
func (d *dispatcher) pick() []*permit {
	var all []*permit
	for d.free() > 0 && !d.closed {
		q, ok := d.nextQueue()
		if !ok {
			break
		}
		kind := d.kindToPick(q)
		chosen := &d.queues[q]
		s := chosen.ready[kind][0]
		chosen.ready[kind][0] = nil
		chosen.ready[kind] = chosen.ready[kind][1:]
		chosen.last = kind
		s.offers.queued[slotOf(q)] = false
		if chosen.running++; chosen.running == 1 {
			d.idle--
		}
		p := &permit{service: s, queue: q, suspect: kind == 1}
		if p.suspect {
			d.suspects++
		} else {
			d.healthy++
		}
		all = append(all, p)
	}
	return all
}

// nextQueue returns the queue to serve next, according to the plan of the run. It returns false
// if no queue may be served. A run has two plans, the second of which is the next run's.
func (d *dispatcher) nextQueue() (int, bool) {
	switch q, n := d.servable(); n {
	case 0:
		return 0, false
	case 1:
		return q, true // no other one is passed over
	}
	for range 2 {
		for i, q := range d.plan {
			if d.mayServe(q) {
				d.plan = d.plan[i+1:]
				return q, true
			}
		}
		d.planRun()
	}
	// Queues that were not drawn.
	for i := range d.queues {
		if q := (d.rotation + i) % len(d.queues); d.mayServe(q) {
			return q, true
		}
	}
	return 0, false
}

// servable returns how many queues may be served, and one of them.
func (d *dispatcher) servable() (queue, n int) {
	for q := range d.queues {
		if d.mayServe(q) {
			queue = q
			n++
		}
	}
	return queue, n
}

// planRun plans the next run: the next queues in rotation, as many as there are workers, and
// then the queues that are assigned by their lengths.
func (d *dispatcher) planRun() {
	lengths := make([]int, len(d.queues))
	for q := range d.queues {
		lengths[q] = len(d.queues[q].ready[0]) + len(d.queues[q].ready[1])
	}
	d.plan = nil
	for range min(d.workers, len(d.queues)) {
		d.plan = append(d.plan, d.rotation)
		d.rotation = (d.rotation + 1) % len(d.queues)
	}
	d.plan = append(d.plan, assignWorkers(d.workers, lengths, d.random)...)
}

// mayServe reports whether a queue has a cursor that may get a worker.
func (d *dispatcher) mayServe(q int) bool {
	if d.kindToPick(q) < 0 {
		return false
	}
	if d.queues[q].running == 0 || d.workers < len(d.queues) {
		return true
	}
	return d.free() > d.idle
}

// kindToPick returns whether a healthy cursor of a queue or a suspect is the next one; -1 if
// there is none.
func (d *dispatcher) kindToPick(q int) int {
	for i := range 2 {
		kind := (d.queues[q].last + 1 + i) % 2
		if len(d.queues[q].ready[kind]) > 0 && (kind == 0 || d.suspects < d.maxSuspects()) {
			return kind
		}
	}
	return -1
}
