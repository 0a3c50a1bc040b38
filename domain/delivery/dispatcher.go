package delivery

import (
	"runtime"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// A dispatcher grants workers to the cursors that have a delivery to call, in the order of the
// priorities of the deliveries.
type dispatcher struct {
	workers int
	random  func() uint64
	grant   func(*permit)

	mu       sync.Mutex
	healthy  int // permits of receivers that are not suspects
	suspects int // permits of suspects, and of slow calls
	queues   []cursorQueue
	idle     int // queues without a permit
	turn     domain.PriorityTurn
	plans    [domain.Priorities]runPlan
	closed   bool
}

// A runPlan is the order in which a run serves the queues for the deliveries of a priority.
type runPlan struct {
	queues   []int // queues of the next picks
	rotation int   // the queue that is next in rotation
}

// A cursorQueue has the cursors with a delivery that failed n times; n is the index of the
// queue in dispatcher.queues.
type cursorQueue struct {
	running int                 // number of permits
	ready   [2]readyList        // cursors of healthy receivers, and of suspects
	last    int                 // index in ready of the list of the last pick
	turn    domain.PriorityTurn // decides the priority of the next delivery if this is the only queue that may be served
}

// A readyList has cursors by priority. Cursors of one priority are served in turn.
type readyList struct {
	cursors [domain.Priorities]turns[*service]
	waiting domain.PrioritySet // priorities that have cursors
}

func (r *readyList) add(s *service, o *offer) {
	r.waiting.Add(o.priority)
	o.turn = r.cursors[o.priority].add(s.topic, s)
}

func (r *readyList) remove(o *offer) {
	r.cursors[o.priority].remove(o.turn)
	r.clearTurn(o)
}

// takeNext removes and returns the next cursor of a priority. The list must have a cursor of this
// priority.
func (r *readyList) takeNext(slot, priority int) *service {
	s := r.cursors[priority].takeNext()
	r.clearTurn(&s.offers.bySlot[slot])
	return s
}

func (r *readyList) clearTurn(o *offer) {
	o.turn = nil
	if r.cursors[o.priority].len() == 0 {
		r.waiting.Remove(o.priority)
	}
}

// A permit is the right of a cursor to one call. A worker is assigned to each permit,
// but calls of suspects get at most half of the workers; see maxSuspects.
type permit struct {
	service *service
	queue   int
	suspect bool // guarded by dispatcher.mu
	ended   bool // guarded by dispatcher.mu
}

// offers has up to two offers of a cursor: one for its fresh deliveries, and one for its next
// retry. dispatcher.mu guards them.
type offers struct {
	bySlot  [2]offer
	suspect bool // a call is slow, or the last call failed or was slow; see slowCall
}

// An offer is the entry of a cursor in a queue.
type offer struct {
	turn     *turn[*service] // nil: the cursor is not offered
	queue    int
	priority int // priority of the delivery that would be called
}

func newDispatcher(workers, queues int, random func() uint64, grant func(*permit)) *dispatcher {
	return &dispatcher{workers: workers, queues: make([]cursorQueue, queues), idle: queues, random: random, grant: grant}
}

// queueOf returns the queue of a delivery that failed attempts times.
func (d *dispatcher) queueOf(attempts int) int { return min(attempts, len(d.queues)-1) }

// slotOf returns the index in offers.bySlot for a queue: 0 for fresh deliveries, 1 for retries.
func slotOf(queue int) int { return min(queue, 1) }

// listIndex returns the index in cursorQueue.ready of the list that the cursor belongs to.
func (o *offers) listIndex() int {
	if o.suspect {
		return 1
	}
	return 0
}

// offerCursor adds a cursor to a queue, behind the cursors whose deliveries have the same
// priority. If the cursor is offered with this priority already, it keeps its position.
func (d *dispatcher) offerCursor(s *service, queue, priority int) {
	d.mu.Lock()
	o := &s.offers.bySlot[slotOf(queue)]
	if !d.closed && (o.turn == nil || o.priority != priority) {
		kind := s.offers.listIndex()
		if o.turn != nil {
			d.queues[o.queue].ready[kind].remove(o)
		}
		o.queue, o.priority = queue, priority
		d.queues[queue].ready[kind].add(s, o)
	}
	granted := d.pickPermits()
	d.mu.Unlock()
	d.grantPermits(granted)
}

// setSuspect records whether the receiver of a cursor is a suspect, and moves its offers.
func (d *dispatcher) setSuspect(s *service, suspect bool) {
	d.mu.Lock()
	if s.offers.suspect == suspect {
		d.mu.Unlock()
		return
	}
	d.moveOffers(s, suspect)
	granted := d.pickPermits()
	d.mu.Unlock()
	d.grantPermits(granted)
}

// isSuspect reports whether the receiver of a cursor is a suspect.
func (d *dispatcher) isSuspect(s *service) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.offers.suspect
}

// moveOffers does the same as setSuspect, but grants no permits. The caller holds mu.
func (d *dispatcher) moveOffers(s *service, suspect bool) {
	o := &s.offers
	if o.suspect == suspect {
		return
	}
	before := o.listIndex()
	o.suspect = suspect
	for slot := range o.bySlot {
		one := &o.bySlot[slot]
		if one.turn == nil || d.closed {
			continue
		}
		ready := &d.queues[one.queue].ready
		ready[before].remove(one)
		ready[o.listIndex()].add(s, one)
	}
}

// markSlow records that a call takes long, for example because its receiver hangs. From now on
// it counts as the call of a suspect.
func (d *dispatcher) markSlow(p *permit) {
	d.mu.Lock()
	if !p.ended {
		d.moveOffers(p.service, true)
		if !p.suspect {
			p.suspect = true
			d.healthy--
			d.suspects++
		}
	}
	granted := d.pickPermits()
	d.mu.Unlock()
	d.grantPermits(granted)
}

// releasePermit ends a permit, and grants free workers to other cursors.
func (d *dispatcher) releasePermit(p *permit) {
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
	granted := d.pickPermits()
	d.mu.Unlock()
	d.grantPermits(granted)
}

// maxSuspects returns the limit for the workers of suspects: half of all workers. Calls of
// suspects beyond the limit, which began before their receivers became suspects, need no
// worker. Otherwise receivers that begin to hang at the same time would occupy all workers
// until their calls time out.
func (d *dispatcher) maxSuspects() int { return max(d.workers/2, 1) }

// freeWorkers returns the number of workers without a call.
func (d *dispatcher) freeWorkers() int {
	return d.workers - d.healthy - min(d.suspects, d.maxSuspects())
}

// close stops the granting of permits.
func (d *dispatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for q := range d.queues {
		d.queues[q].ready = [2]readyList{}
	}
}

// grantPermits grants permits, and yields the processor before each grant. Without the yields, a
// message to ten thousand cursors would delay the deliveries of other streams.
func (d *dispatcher) grantPermits(all []*permit) {
	for _, p := range all {
		runtime.Gosched()
		d.grant(p)
	}
}

// pickPermits grants free workers to cursors, until no workers or no cursors are left. The
// caller holds mu.
func (d *dispatcher) pickPermits() []*permit {
	var all []*permit
	for d.freeWorkers() > 0 && !d.closed {
		q, priority, ok := d.nextQueue()
		if !ok {
			break
		}
		kind := d.kindToPick(q, priority)
		chosen := &d.queues[q]
		s := chosen.ready[kind].takeNext(slotOf(q), priority)
		chosen.last = kind
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

// nextQueue returns the queue to serve next and the priority of the delivery. The PriorityTurn
// decides the priority, and the plan of the run decides the queue. When the plan has no more
// picks, nextQueue plans the next run. ok is false if no queue may be served.
func (d *dispatcher) nextQueue() (queue, priority int, ok bool) {
	queue, n, waiting := d.countServable()
	if n == 0 {
		return 0, 0, false
	}
	if n == 1 { // a single queue needs no plan
		turn := &d.queues[queue].turn
		priority = turn.Next(waiting)
		turn.Pick()
		return queue, priority, true
	}
	priority = d.turn.Next(waiting)
	d.turn.Pick()
	plan := &d.plans[priority]
	for range 2 {
		for i, q := range plan.queues {
			if d.servableIn(q).Has(priority) {
				plan.queues = plan.queues[i+1:]
				return q, priority, true
			}
		}
		d.planRun(priority)
	}
	// The new plan has no queue that may be served, so the next such queue in rotation is served.
	for i := range d.queues {
		if q := (plan.rotation + i) % len(d.queues); d.servableIn(q).Has(priority) {
			return q, priority, true
		}
	}
	return 0, 0, false
}

// countServable returns the number n of queues that may be served, one of these queues, and the
// priorities that wait in these queues.
func (d *dispatcher) countServable() (queue, n int, waiting domain.PrioritySet) {
	for q := range d.queues {
		if set := d.servableIn(q); !set.IsEmpty() {
			queue = q
			n++
			waiting |= set
		}
	}
	return queue, n, waiting
}

// planRun plans the next run of a priority: the next queues in rotation, one for each worker,
// and then the queues that assignWorkers draws by their lengths.
func (d *dispatcher) planRun(priority int) {
	lengths := make([]int, len(d.queues))
	for q := range d.queues {
		for kind := range d.queues[q].ready {
			lengths[q] += d.queues[q].ready[kind].cursors[priority].len()
		}
	}
	plan := &d.plans[priority]
	plan.queues = nil
	for range min(d.workers, len(d.queues)) {
		plan.queues = append(plan.queues, plan.rotation)
		plan.rotation = (plan.rotation + 1) % len(d.queues)
	}
	plan.queues = append(plan.queues, assignWorkers(d.workers, lengths, d.random)...)
}

// servableIn returns the priorities in a queue with a cursor that may get a worker.
func (d *dispatcher) servableIn(q int) domain.PrioritySet {
	one := &d.queues[q]
	waiting := one.ready[0].waiting
	if d.suspects < d.maxSuspects() {
		waiting |= one.ready[1].waiting
	}
	if one.running == 0 || d.workers < len(d.queues) || d.freeWorkers() > d.idle {
		return waiting
	}
	return 0
}

// kindToPick returns the index in cursorQueue.ready of the list to pick from next for a priority.
func (d *dispatcher) kindToPick(q, priority int) int {
	one := &d.queues[q]
	for i := range 2 {
		kind := (one.last + 1 + i) % 2
		if one.ready[kind].waiting.Has(priority) && (kind == 0 || d.suspects < d.maxSuspects()) {
			return kind
		}
	}
	return 0
}
