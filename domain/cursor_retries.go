package domain

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// A retries value contains the failed deliveries of a cursor. Deliveries that wait for an attempt
// are also in heaps, one for each priority, ordered by due time. Deliveries that are being called
// are in no heap.
type retries struct {
	all    map[EntryID]*waitingRetry
	due    *[Priorities]dueHeap // heap of waiting retries for each priority; nil until the first retry
	digest uint64
	turn   PriorityTurn // selects the priority of the next due retry

	byReplay map[int]int // number of retries for each value of Retry.Replay
	lateFrom int         // see Policy.lateFrom
	late     int         // number of retries that have failed at least lateFrom times
}

type waitingRetry struct {
	Retry
	index int // index in the heap; -1: a call of the retry is under way
}

func (r *retries) len() int { return len(r.all) }

func (r *retries) get(e EntryID) *Retry {
	if w := r.all[e]; w != nil {
		return &w.Retry
	}
	return nil
}

// firstDue returns the waiting retry with the earliest due time, or nil.
func (r *retries) firstDue() *Retry {
	var first *waitingRetry
	for _, h := range r.heaps() {
		if len(h) > 0 && (first == nil || compareDue(h[0], first) < 0) {
			first = h[0]
		}
	}
	if first == nil {
		return nil
	}
	return &first.Retry
}

// nextDue returns the next retry to call among those that are due, or nil.
func (r *retries) nextDue(now time.Time) *Retry {
	var due PrioritySet
	for p, h := range r.heaps() {
		if len(h) > 0 && !h[0].Due.After(now) {
			due.Add(p)
		}
	}
	if due.IsEmpty() {
		return nil
	}
	return &r.due[r.turn.Next(due)][0].Retry
}

// heaps returns the waiting retries by priority.
func (r *retries) heaps() []dueHeap {
	if r.due == nil {
		return nil
	}
	return r.due[:]
}

// earliest returns up to n waiting retries, ordered by due time.
func (r *retries) earliest(n int) []EntryID {
	due := slices.Concat(r.heaps()...)
	slices.SortFunc(due, compareDue)
	var ids []EntryID
	for _, w := range due[:min(n, len(due))] {
		ids = append(ids, w.EntryID)
	}
	return ids
}

// reorder sorts the heaps again after due times were changed.
func (r *retries) reorder() {
	for p := range r.heaps() {
		heap.Init(&r.due[p])
	}
}

// put adds a retry, or replaces the retry of the same entry.
func (r *retries) put(retry Retry) {
	r.remove(retry.EntryID, false)
	w := &waitingRetry{Retry: retry}
	if r.all == nil {
		r.all, r.due = make(map[EntryID]*waitingRetry), new([Priorities]dueHeap)
		r.byReplay = make(map[int]int)
	}
	r.byReplay[retry.Replay]++
	if retry.Attempts >= r.lateFrom {
		r.late++
	}
	r.all[retry.EntryID] = w
	r.digest += retry.digest()
	heap.Push(&r.due[retry.Priority], w)
}

// remove removes a retry. If called is true, a call of the retry is under way: the retry is
// removed from its heap, but remains in all.
func (r *retries) remove(e EntryID, called bool) {
	w := r.all[e]
	if w == nil {
		return
	}
	if w.index >= 0 {
		heap.Remove(&r.due[e.Priority], w.index)
	}
	if !called {
		r.digest -= w.digest()
		delete(r.all, e)
		if w.Attempts >= r.lateFrom {
			r.late--
		}
		if r.byReplay[w.Replay]--; r.byReplay[w.Replay] == 0 {
			delete(r.byReplay, w.Replay)
		}
	}
}

// A dueHeap implements heap.Interface; the retry with the earliest due time is first.
type dueHeap []*waitingRetry

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool { return compareDue(h[i], h[j]) < 0 }

// compareDue orders retries by their due times. Among equal times, the highest priority is first.
func compareDue(a, b *waitingRetry) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Number, b.Number))
}

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	w := x.(*waitingRetry)
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h, w.index = (*h)[:last], -1
	return w
}
