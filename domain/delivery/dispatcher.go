package delivery

import "sync"

// A dispatcher gives the workers to the cursors that have something to call.
type dispatcher struct {
	workers int
	random  func() uint64
	grant   func(*service, permit)

	mu       sync.Mutex
	free     int
	suspects int // workers that call receivers whose last call failed or took long
	queues   []queue
	plan     []int // the queues of the next picks
	rotation int   // the queue that is the next one in rotation
	closed   bool
}

// A queue has the cursors with a delivery that failed as many times as its number.
type queue struct {
	running int           // workers
	ready   [2][]*service // in turn: healthy receivers, and suspects
	last    int           // of ready, that was picked from
}

// A permit is a worker that serves a queue.
type permit struct {
	queue   int
	suspect bool
}

// An offered cursor is in up to two queues: that of its fresh deliveries, and that of its
// next retry.
type offers struct {
	queued [2]bool // guarded by dispatcher.mu
}

func newDispatcher(workers, queues int, random func() uint64, grant func(*service, permit)) *dispatcher {
	return &dispatcher{workers: workers, free: workers, queues: make([]queue, queues), random: random, grant: grant}
}

// queueOf returns the queue of a delivery that failed some times.
func (d *dispatcher) queueOf(attempts int) int { return min(attempts, len(d.queues)-1) }

// slotOf returns which of the two offers of a cursor is that of a queue.
func slotOf(queue int) int { return min(queue, 1) }

// offer puts a cursor at the end of a queue, unless it is offered already.
func (d *dispatcher) offer(s *service, queue int, suspect bool) {
	d.mu.Lock()
	offered := &s.offers.queued[slotOf(queue)]
	if !*offered && !d.closed {
		*offered = true
		kind := 0
		if suspect {
			kind = 1
		}
		d.queues[queue].ready[kind] = append(d.queues[queue].ready[kind], s)
	}
	granted := d.pick()
	d.mu.Unlock()
	d.send(granted)
}

// release returns a worker.
func (d *dispatcher) release(p permit) {
	d.mu.Lock()
	d.free++
	d.queues[p.queue].running--
	if p.suspect {
		d.suspects--
	}
	granted := d.pick()
	d.mu.Unlock()
	d.send(granted)
}

// close ends the grants.
func (d *dispatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for q := range d.queues {
		d.queues[q].ready = [2][]*service{}
	}
}

type granted struct {
	service *service
	permit  permit
}

func (d *dispatcher) send(all []granted) {
	for _, g := range all {
		d.grant(g.service, g.permit)
	}
}

// pick gives free workers to cursors, as long as there are both. The caller holds mu.
func (d *dispatcher) pick() []granted {
	var all []granted
	for d.free > 0 && !d.closed {
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
		chosen.running++
		d.free--
		p := permit{queue: q, suspect: kind == 1}
		if p.suspect {
			d.suspects++
		}
		all = append(all, granted{s, p})
	}
	return all
}

// nextQueue returns the queue to serve next, according to the plan of the run. It returns false
// if no queue may be served. A run has two plans, the second of which is the next run's.
func (d *dispatcher) nextQueue() (int, bool) {
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
	reserved := 0
	for other := range d.queues {
		if d.queues[other].running == 0 {
			reserved++
		}
	}
	return d.free > reserved
}

// kindToPick returns whether a healthy cursor of a queue or a suspect is the next one; -1 if
// there is none.
func (d *dispatcher) kindToPick(q int) int {
	for i := range 2 {
		kind := (d.queues[q].last + 1 + i) % 2
		if len(d.queues[q].ready[kind]) > 0 && (kind == 0 || d.suspects < max(d.workers/2, 1)) {
			return kind
		}
	}
	return -1
}
