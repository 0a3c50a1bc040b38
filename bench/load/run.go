package load

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Run runs a plan. It returns when the time of the plan has passed and all due operations
// have ended. If ctx ends first, it returns when the running operations have ended,
// with the error of ctx and the Result so far.
func Run(ctx context.Context, p Plan) (*Result, error) {
	p.Limit = cmp.Or(p.Limit, 4096)
	r := &runner{plan: p, began: time.Now(), result: newResult()}
	r.changed.L = &r.mu
	stop := context.AfterFunc(ctx, r.closeQueue)
	defer stop()
	r.queueDue(ctx)
	r.closeQueue()
	r.workers.Wait()
	return r.result, ctx.Err()
}

// A runner runs one plan. Due operations wait in a queue for workers. A worker is
// started whenever none is idle, and workers are not stopped before the end.
type runner struct {
	plan    Plan
	began   time.Time
	result  *Result
	workers sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	due     []upcoming // due operations that have not started, in order
	started int        // number of started workers
	idle    int        // workers that are waiting and were not signalled
	closed  bool       // no more operations will become due
}

// queueDue adds operations to the queue at their due times.
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

// addDue adds a due operation to the queue, and wakes or starts a worker for
// it.
func (r *runner) addDue(ctx context.Context, op upcoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCounted(op) {
		r.result.Backlog = max(r.result.Backlog, len(r.due))
	}
	r.due = append(r.due, op)
	switch {
	case r.idle > 0:
		r.idle-- // decremented before the worker wakes, so that the next operation does not wait for the same worker
		r.changed.Signal()
	case r.started < r.plan.Limit:
		r.started++
		r.result.Workers = r.started
		r.workers.Go(func() { r.runTasks(ctx) })
	}
}

// closeQueue makes workers end when the queue is empty.
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

// takeDue waits for an operation and returns the operation with the earliest due time. It returns false
// when no more operations will become due.
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

// carryOut runs an operation and the operations that follow it.
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

// isCounted reports whether an operation is counted: it is if it is due after the plan's Settle.
func (r *runner) isCounted(op upcoming) bool { return op.due >= r.plan.Settle }
