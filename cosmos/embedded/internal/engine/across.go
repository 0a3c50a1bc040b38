package engine

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// A lane is one partition in a query over several.
type lane struct {
	pk    Partition
	first uint64 // its oldest document
	seq   uint64 // its next document
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
		var l lane
		found := false
		r.reader.Scan(from, end, func(key, _ []byte) bool {
			l.pk, l.first, found = Partition(key[len(all)+2:len(key)-8]), number(key[len(key)-8:]), true
			return false
		})
		if r.broken = cmp.Or(r.broken, r.ctx.Err()); !found || r.broken != nil {
			slices.SortFunc(lanes, func(a, b lane) int { return cmp.Compare(a.seq, b.seq) })
			return lanes
		}
		from = after(partitionPrefix('D', r.c.number, l.pk))
		if !r.within(l.pk) {
			continue
		}
		if l.seq, found = r.next(l, last); found {
			lanes = append(lanes, l)
		}
	}
}

// next returns the first document of a partition after the sequence number that
// the query has to look at, as far as the id index tells.
func (r *run) next(l lane, last uint64) (seq uint64, found bool) {
	if r.idRange != nil {
		if w := r.walk(l.pk); w.done {
			i, _ := slices.BinarySearch(w.seqs, last+1)
			if i == len(w.seqs) {
				return 0, false
			}
			return w.seqs[i], true
		}
	}
	if l.first > last {
		return l.first, true
	}
	prefix := partitionPrefix('D', r.c.number, l.pk)
	r.reader.Scan(documentKey(r.c.number, l.pk, last+1), after(prefix), func(key, _ []byte) bool {
		seq, found = number(key[len(key)-8:]), true
		return false
	})
	return seq, found
}
