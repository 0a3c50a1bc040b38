package engine

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// A lane is one partition in a query over several: its next document.
type lane struct {
	pk  Partition
	seq uint64
}

// across gives the documents of all partitions in the order of insertion. A
// page that is full by count does not look ahead, so the last page may be
// empty, as it is on Cosmos DB.
func (r *run) across() {
	lanes := laneHeap(r.lanes(r.at.seq)) // sorted, and so a heap
	last := r.at.seq
	if !r.resumed {
		r.skip = r.q.Query.Offset()
	}
	for len(lanes) > 0 {
		if r.left() == 0 {
			return
		}
		if r.pageIsFull() {
			r.continueAfter(position{seq: last})
			return
		}
		if r.endsPage(last, r.skip) {
			return
		}
		first := lanes[0]
		full := false
		next := uint64(0)
		r.scan(first.pk, first.seq-1, func(seq uint64, s stored, doc []byte) bool {
			if seq != first.seq { // only to learn where the lane goes on
				next = seq
				r.page.Scanned--
				return false
			}
			full = !r.give(seq, s, doc)
			return !full
		})
		if r.brokenAt > first.seq { // it is reported in its turn
			next = r.brokenAt
			r.broken, r.brokenAt = nil, 0
		}
		switch {
		case r.brokenAt != 0 && r.page.Count > 0: // the next page begins with the error
			r.broken, r.brokenAt = nil, 0
			r.continueAfter(position{seq: last})
			return
		case r.brokenAt != 0:
			r.continueAfter(position{seq: first.seq})
			return
		case r.broken != nil:
			return
		case full:
			r.continueAfter(position{seq: last})
			return
		}
		last = first.seq
		if next > 0 {
			lanes[0].seq = next
			heap.Fix(&lanes, 0)
		} else {
			heap.Pop(&lanes)
		}
	}
	if r.pageIsFull() {
		r.continueAfter(position{seq: last})
	}
}

// A laneHeap has the lane with the next document first.
type laneHeap []lane

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return h[i].seq < h[j].seq }
func (h laneHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laneHeap) Push(x any)        { *h = append(*h, x.(lane)) }

func (h *laneHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	*h = (*h)[:last]
	return l
}

// within reports whether the query looks into partition pk.
func (r *run) within(pk Partition) bool {
	return strings.HasPrefix(string(pk), string(r.q.Prefix)) && (r.q.Range == nil || r.q.Range.has(r.c.epk(pk)))
}

// lanes finds all partitions that the query looks into, each with its first document after the
// sequence number, by jumping from one partition to the next.
func (r *run) lanes(last uint64) []lane {
	var lanes []lane
	all := containerPrefix('D', r.c.number)
	from, end := all, after(all)
	for {
		var pk Partition
		found := false
		r.reader.Scan(from, end, func(key, _ []byte) bool {
			pk, found = Partition(key[len(all)+2:len(key)-8]), true // a copy
			return false
		})
		if r.broken = cmp.Or(r.broken, r.ctx.Err()); !found || r.broken != nil {
			slices.SortFunc(lanes, func(a, b lane) int { return cmp.Compare(a.seq, b.seq) })
			return lanes
		}
		prefix := partitionPrefix('D', r.c.number, pk)
		from = after(prefix)
		if !r.within(pk) {
			continue
		}
		r.reader.Scan(documentKey(r.c.number, pk, last+1), from, func(key, _ []byte) bool {
			lanes = append(lanes, lane{pk, number(key[len(key)-8:])})
			return false
		})
	}
}
