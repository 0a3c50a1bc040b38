package load

import (
	"container/heap"
	"context"
	"time"
)

// A Task is an operation. It is called by a goroutine of its own, and returns early
// if ctx ends.
type Task func(ctx context.Context) Outcome

// An Outcome is what an operation came to.
type Outcome struct {
	// Kind is under what it is counted, such as "peek". An operation with "" is not counted. It is
	// said afterwards, because only then it is known whether there was anything to fetch.
	Kind string

	// Failed is the kind of failure, such as "503"; "" means success. Failures are counted, and
	// their time counts like that of others.
	Failed string

	// Then follows: it is due now.
	Then Task
}

// A Stream is operations that are due at certain times.
type Stream struct {
	Arrivals Arrivals
	Task     Task
}

// A Plan is a load.
type Plan struct {
	Streams []Stream
	Lasts   time.Duration // what is due before that is done
	Settle  time.Duration // what is due before that is done, but not counted

	// Most is how many operations may be under way at once. It is there for a service
	// that has stopped altogether: well above what is needed, it changes nothing.
	// Default: 4096.
	Most int
}

// A dueQueue gives the operations of all streams in the order in which they are due.
// Streams that are due at the same time take turns as they stand in the plan.
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

// nextDue takes the first operation and lets its stream's next one queue up.
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
