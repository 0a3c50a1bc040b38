package smallsaves

import (
	"iter"
	"unsafe"
)

// chunk is how many states a queue allocates at once.
const chunk = 256

// A queue holds states in chunks, each of which is freed as soon as it is drained.
type queue struct {
	chunks [][]state
	n      int
}

func (q *queue) push(s *state) {
	if len(q.chunks) == 0 || len(q.chunks[len(q.chunks)-1]) == chunk {
		q.chunks = append(q.chunks, make([]state, 0, chunk))
	}
	last := &q.chunks[len(q.chunks)-1]
	*last = append(*last, *s)
	q.n++
}

// drain yields each state and removes it.
func (q *queue) drain() iter.Seq[*state] {
	return func(yield func(*state) bool) {
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
func (q *queue) bytes() int64 { return int64(q.n) * int64(unsafe.Sizeof(state{})) }
