package smallsaves

import (
	"iter"
	"unsafe"
)

// chunk is the number of states for which a queue allocates memory in one step.
const chunk = 256

// A stateQueue holds states in chunks, each of which is freed as soon as it is drained.
type stateQueue struct {
	chunks [][]modelState
	n      int
}

func (q *stateQueue) push(s *modelState) {
	if len(q.chunks) == 0 || len(q.chunks[len(q.chunks)-1]) == chunk {
		q.chunks = append(q.chunks, make([]modelState, 0, chunk))
	}
	last := &q.chunks[len(q.chunks)-1]
	*last = append(*last, *s)
	q.n++
}

// drain yields each state and removes it.
func (q *stateQueue) drain() iter.Seq[*modelState] {
	return func(yield func(*modelState) bool) {
		for i := range q.chunks {
			all := q.chunks[i]
			q.chunks[i] = nil
			for j := range all {
				q.n--
				if !yield(&all[j]) {
					return
				}
			}
		}
		q.chunks = nil
	}
}

// bytes returns the approximate memory of the states.
func (q *stateQueue) bytes() int64 { return int64(q.n) * int64(unsafe.Sizeof(modelState{})) }
