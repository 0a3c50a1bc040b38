package load

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Run carries out a plan. It returns when the time of the plan is over and what was due
// is done, or when ctx ends and what was under way has come to its end; then the error
// is that of ctx, and the Result is of what was done until then.
func Run(ctx context.Context, p Plan) (*Result, error) {
	p.Most = cmp.Or(p.Most, 4096)
	r := &runner{plan: p, began: time.Now(), result: newResult()}
	r.changed.L = &r.mu
	stop := context.AfterFunc(ctx, r.closeQueue)
	defer stop()
	r.queueDue(ctx)
	r.closeQueue()
	r.workers.Wait()
	return r.result, ctx.Err()
}

// A runner is one plan while it is carried out. What is due goes into a queue, from
// which workers take; there are as many as were ever needed at once.
type runner struct {
	plan    Plan
	began   time.Time
	result  *Result
	workers sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	due     []upcoming // and not begun, the first one first
	started int        // workers
	idle    int        // of them, those that wait and have not been called
	closed  bool       // nothing more becomes due
}

// queueDue puts what is due into the queue, at its time.
func (r *runner) queueDue(ctx context.Context) {
	if len(r.plan.Streams) == 0 {
		return
	}
	streams := newQueue(r.plan.Streams)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		op := streams.nextDue(r.plan.Streams)
		timer.Reset(time.Until(r.began.Add(min(op.due, r.plan.Lasts))))
		select {
		case <-timer.C:
			if op.due >= r.plan.Lasts {
				return
			}
			r.addDue(ctx, op)
		case <-ctx.Done():
			return
		}
	}
}

// addDue queues an operation that is due, and wakes or starts a worker for it.
func (r *runner) addDue(ctx context.Context, op upcoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCounted(op) {
		r.result.Backlog = max(r.result.Backlog, len(r.due))
	}
	r.due = append(r.due, op)
	switch {
	case r.idle > 0:
		r.idle-- // here, so that the next operation does not count on the same worker
		r.changed.Signal()
	case r.started < r.plan.Most:
		r.started++
		r.result.Workers = r.started
		r.workers.Go(func() { r.runTasks(ctx) })
	}
}

// closeQueue lets workers end once the queue is empty.
func (r *runner) closeQueue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.idle = true, 0
	r.changed.Broadcast()
}

func (r *runner) runTasks(ctx context.Context) {
	for {
		op, ok := r.takeDue()
		if !ok || ctx.Err() != nil {
			return
		}
		r.carryOut(ctx, op)
	}
}

// takeDue waits for the operation that has been due for longest. It returns false when no more will
// become due.
func (r *runner) takeDue() (upcoming, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.due) == 0 && !r.closed {
		r.idle++
		r.changed.Wait()
	}
	if len(r.due) == 0 {
		return upcoming{}, false
	}
	op := r.due[0]
	r.due = r.due[1:]
	return op, true
}

// carryOut does an operation and what follows from it.
func (r *runner) carryOut(ctx context.Context, op upcoming) {
	due, counts := r.began.Add(op.due), r.isCounted(op)
	if counts {
		r.result.addStart(time.Since(due))
	}
	for task := r.plan.Streams[op.stream].Task; task != nil; {
		outcome := task(ctx)
		now := time.Now()
		if counts {
			r.result.addOutcome(outcome, now.Sub(due))
		}
		task, due = outcome.Then, now
	}
}

// isCounted reports whether an operation counts, because it is due after the plan's Settle.
func (r *runner) isCounted(op upcoming) bool { return op.due >= r.plan.Settle }
