package engine

import (
	"cmp"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// A sortCandidate is a document that may belong to an ordered page.
type sortCandidate struct {
	key []query.Value
	seq uint64
	s   storedDocument
}

// fillOrdered adds documents of one logical or physical partition in the order of ORDER BY. Documents with equal keys
// are in the order of insertion. It sorts, unless fillOrderedByID can use the id index.
//
// The first page reads the whole partition and retains the smallest documents. If the sorted order turns out to be the
// order of insertion, the continuation token says so, and later pages continue from a sequence number. The token also
// contains the number of the partition's last write, because later writes may change the order.
func (r *pageBuilder) fillOrdered() {
	written := readUsage(r.reader.Get(partitionKey(r.c.number, r.q.Partition))).version
	if r.resumed && r.at.inOrder && r.at.written == written {
		r.fillInInsertionOrder(written)
		return
	}
	skip := r.q.Query.Offset()
	if r.resumed {
		skip = 0
	}
	best, inOrder := r.findSmallest(r.maxCandidates(skip))
	var last *sortCandidate
	for i := range best {
		if i < skip {
			last = &best[i]
			continue
		}
		if r.remainingResults() == 0 {
			return
		}
		doc := r.readJSON(best[i].seq, best[i].s)
		if r.broken != nil {
			return
		}
		r.q.Query.Extract(doc, r.slots)
		if !r.addDocument(best[i].s, doc) {
			r.continueAfter(pagePosition{seq: last.seq, keys: last.key, ordered: true, inOrder: inOrder, written: written})
			return
		}
		last = &best[i]
	}
}

// maxCandidates returns how many candidates a page needs: the size of the page, plus one to know whether another page
// follows. 0 means all.
func (r *pageBuilder) maxCandidates(skip int) int {
	n := r.q.MaxItems
	if n < 0 {
		return 0
	}
	if limit := r.remainingResults(); limit >= 0 && limit < n {
		n = limit
	}
	return skip + n + 1
}

// findSmallest returns the first n documents after the position, in order. inOrder reports whether the order of all
// documents after the position is the order of insertion.
func (r *pageBuilder) findSmallest(n int) (best []sortCandidate, inOrder bool) {
	q := r.q.Query
	order := func(a, b sortCandidate) int {
		if c := q.CompareKeys(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.seq, b.seq)
	}
	start := sortCandidate{key: r.at.keys, seq: r.at.seq}
	full := false // true if the first n candidates are sorted and are the smallest so far
	inOrder = r.q.Scoped
	var key, previous []query.Value
	r.scanAll(func(seq uint64, s storedDocument, doc []byte) bool {
		r.slots.RefuseIfExhausted()
		if !r.testCondition(s, doc) {
			return true
		}
		key = q.SortKey(key[:0], r.slots)
		this := sortCandidate{key: key, seq: seq, s: s}
		if inOrder {
			if previous != nil && q.CompareKeys(previous, key) > 0 {
				inOrder = false
			} else {
				previous = cloneKey(key, previous)
			}
		}
		if r.resumed && order(this, start) <= 0 || full && order(this, best[n-1]) >= 0 {
			return true
		}
		this.key = cloneKey(key, nil)
		best = append(best, this)
		if !r.slots.Hold(candidateSize(this)) {
			return false
		}
		if n > 0 && len(best) >= 2*n+64 {
			slices.SortFunc(best, order)
			for _, dropped := range best[n:] {
				r.slots.Hold(-candidateSize(dropped))
			}
			clear(best[n:])
			best, full = best[:n], true
		}
		return true
	})
	slices.SortFunc(best, order)
	if n > 0 && len(best) > n {
		best = best[:n]
	}
	return best, inOrder
}

// candidateSize estimates the size of a candidate in bytes.
func candidateSize(c sortCandidate) int {
	const fields = 160
	n := fields
	for _, v := range c.key {
		n += fields/2 + len(v.Text)
	}
	return n
}

// cloneKey copies a sort key that points into documents, using the memory of into.
func cloneKey(key, into []query.Value) []query.Value {
	if cap(into) < len(key) {
		into = make([]query.Value, len(key))
	}
	into = into[:len(key)]
	for i, v := range key {
		text := append(into[i].Text[:0], v.Text...)
		into[i] = v
		into[i].Text = text
	}
	return into
}

// fillInInsertionOrder continues a query whose order was found to be the order of insertion.
func (r *pageBuilder) fillInInsertionOrder(written uint64) {
	last := sortCandidate{key: r.at.keys, seq: r.at.seq}
	var key []query.Value
	r.scanPartition(r.q.Partition, r.at.seq, func(seq uint64, s storedDocument, doc []byte) bool {
		if r.remainingResults() == 0 {
			return false
		}
		r.slots.RefuseIfExhausted()
		before := r.page
		if !r.testCondition(s, doc) {
			return true
		}
		if !r.addDocument(s, doc) {
			r.page.Charge, r.page.Loaded = before.Charge, before.Loaded
			r.continueAfter(pagePosition{seq: last.seq, keys: last.key, ordered: true, inOrder: true, written: written})
			return false
		}
		key = r.q.Query.SortKey(key[:0], r.slots)
		last = sortCandidate{key: cloneKey(key, last.key), seq: seq}
		return true
	})
}
