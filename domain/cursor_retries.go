package domain

import (
	"cmp"
	"container/heap"
	"slices"
)

// retries are the deliveries of a cursor that failed: those that wait, in the order of their
// due times, and those that are called.
type retries struct {
	all    map[EntryID]*waitingRetry
	due    dueHeap
	digest uint64
}

type waitingRetry struct {
	Retry
	index int // in the heap; -1: it is called
}

func (r *retries) len() int { return len(r.all) }

func (r *retries) get(e EntryID) *Retry {
	if w := r.all[e]; w != nil {
		return &w.Retry
	}
	return nil
}

// first returns the retry that is due first and not called, or nil.
func (r *retries) first() *Retry {
	if len(r.due) == 0 {
		return nil
	}
	return &r.due[0].Retry
}

// earliest returns up to n of the retries that are not called, in the order of their due times.
func (r *retries) earliest(n int) []EntryID {
	due := slices.Clone(r.due)
	slices.SortFunc(due, compareDue)
	var ids []EntryID
	for _, w := range due[:min(n, len(due))] {
		ids = append(ids, w.EntryID)
	}
	return ids
}

// put adds a retry, or replaces it.
func (r *retries) put(retry Retry) {
	r.remove(retry.EntryID, false)
	w := &waitingRetry{Retry: retry}
	if r.all == nil {
		r.all = make(map[EntryID]*waitingRetry)
	}
	r.all[retry.EntryID] = w
	r.digest += retry.digest()
	heap.Push(&r.due, w)
}

// remove removes a retry. If it is called, it remains and is not found by first.
func (r *retries) remove(e EntryID, called bool) {
	w := r.all[e]
	if w == nil {
		return
	}
	if w.index >= 0 {
		heap.Remove(&r.due, w.index)
	}
	if !called {
		r.digest -= w.digest()
		delete(r.all, e)
	}
}

// dueHeap implements heap.Interface.
type dueHeap []*waitingRetry

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool { return compareDue(h[i], h[j]) < 0 }

// compareDue orders retries by their due times; of equal ones, the highest priority is first.
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
