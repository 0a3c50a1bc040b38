package load

import (
	"container/heap"
	"context"
	"time"
)

// A Task is an operation. It runs in a separate goroutine, and returns early if ctx
// ends.
type Task func(ctx context.Context) Outcome

// An Outcome is the result of an operation.
type Outcome struct {
	// Kind is the kind of operation, such as "peek". An operation with an empty Kind is not
	// counted. The task sets Kind after the operation, because Kind may depend on the result, for
	// example on whether a bundle was available.
	Kind string

	// Failed is the kind of failure, such as "503"; "" means success. Failures are counted, and
	// their latencies are recorded like those of successful operations.
	Failed string

	// Then is the next operation, which is due immediately; nil means that no operation follows.
	Then Task
}

// A Stream is a sequence of operations with due times.
type Stream struct {
	Arrivals Arrivals
	Task     Task
}

// A Plan is a load.
type Plan struct {
	Streams []Stream
	Lasts   time.Duration // operations that are due before this time are run
	Settle  time.Duration // operations that are due before this time are run, but not counted

	// Limit is the maximum number of concurrent operations. It protects the machine
	// from a service that has stalled completely: if it is well above the necessary
	// number, it has no effect. Default: 4096.
	Limit int
}

// A dueQueue returns the operations of all streams in the order of their due times. Operations with
// the same due time are returned in the order of their streams in the plan.
type dueQueue []upcoming

type upcoming struct {
	due    time.Duration
	stream int
}

func newQueue(streams []Stream) *dueQueue {
	q := make(dueQueue, len(streams))
	for i, s := range streams {
		q[i] = upcoming{s.Arrivals(), i}
	}
	heap.Init(&q)
	return &q
}

// nextDue removes and returns the first operation, and enqueues the next one of
// its stream.
func (q *dueQueue) nextDue(streams []Stream) upcoming {
	first := (*q)[0]
	(*q)[0].due = streams[first.stream].Arrivals()
	heap.Fix(q, 0)
	return first
}

func (q dueQueue) Len() int      { return len(q) }
func (q dueQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q dueQueue) Less(i, j int) bool {
	return q[i].due < q[j].due || q[i].due == q[j].due && q[i].stream < q[j].stream
}
func (q *dueQueue) Push(any) { panic("load: the streams of a plan are known from the start") }
func (q *dueQueue) Pop() any { panic("load: a stream has no end") }
