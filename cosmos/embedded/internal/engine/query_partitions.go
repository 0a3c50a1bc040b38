package engine

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// A partitionScan is the scan of one partition in a query over several partitions.
type partitionScan struct {
	pk    Partition
	first uint64 // sequence number of the oldest document in the partition
	seq   uint64 // sequence number of the next document to scan
}

// fillAcrossPartitions adds documents of all partitions in the order of insertion. A page that has reached its item
// limit does not look for further results, so the last page may be empty, as on Cosmos DB.
func (r *pageBuilder) fillAcrossPartitions() {
	scans := scanHeap(r.findScans(r.at.seq)) // a sorted slice is a heap
	last := r.at.seq
	if !r.resumed {
		r.skip = r.q.Query.Offset()
	}
	for len(scans) > 0 {
		if r.remainingResults() == 0 {
			return
		}
		if r.isPageFull() {
			r.continueAfter(pagePosition{seq: last})
			return
		}
		if r.endPage(last, r.skip) {
			return
		}
		first := scans[0]
		full := false
		next := uint64(0)
		r.scanPartition(first.pk, first.seq-1, func(seq uint64, s storedDocument, doc []byte) bool {
			if seq != first.seq { // the document was read only for its sequence number
				next = seq
				r.page.Scanned--
				return false
			}
			full = !r.addRows(seq, s, doc)
			return !full
		})
		if r.brokenAt > first.seq { // a later page reports the damage, when the query reaches the damaged document
			next = r.brokenAt
			r.broken, r.brokenAt = nil, 0
		}
		switch {
		case r.brokenAt != 0 && r.page.Count > 0: // this page ends before the damage; the next page fails
			r.broken, r.brokenAt = nil, 0
			r.continueAfter(pagePosition{seq: last})
			return
		case r.brokenAt != 0:
			r.continueAfter(pagePosition{seq: first.seq})
			return
		case r.broken != nil:
			return
		case full:
			r.continueAfter(pagePosition{seq: last})
			return
		}
		last = first.seq
		if next > 0 {
			scans[0].seq = next
			heap.Fix(&scans, 0)
		} else {
			heap.Pop(&scans)
		}
	}
	if r.remainingResults() != 0 && r.isPageFull() {
		r.continueAfter(pagePosition{seq: last})
	}
}

// A scanHeap is a heap of scans; the scan with the oldest next document is first.
type scanHeap []partitionScan

func (h scanHeap) Len() int           { return len(h) }
func (h scanHeap) Less(i, j int) bool { return h[i].seq < h[j].seq }
func (h scanHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *scanHeap) Push(x any)        { *h = append(*h, x.(partitionScan)) }

func (h *scanHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	*h = (*h)[:last]
	return l
}

// isInScope reports whether the query reads partition pk.
func (r *pageBuilder) isInScope(pk Partition) bool {
	return strings.HasPrefix(string(pk), string(r.q.Prefix)) && (r.q.Range == nil || r.q.Range.hasKey(r.c.effectiveKey(pk)))
}

// findScans returns the scans of all partitions that may have results after the sequence number last.
func (r *pageBuilder) findScans(last uint64) []partitionScan {
	var scans []partitionScan
	add := func(pk Partition) bool {
		if r.broken = cmp.Or(r.broken, r.ctx.Err()); r.broken != nil {
			return false
		}
		if !r.isInScope(pk) {
			return true
		}
		if l, found := r.newScan(pk, last); found {
			scans = append(scans, l)
		}
		return true
	}
	switch {
	case r.partitions != nil:
		for _, pk := range r.partitions {
			if !add(pk) {
				break
			}
		}
	case r.ids != nil:
		r.eachPartitionWithID(add)
	default:
		r.eachPartition(add)
	}
	slices.SortFunc(scans, func(a, b partitionScan) int { return cmp.Compare(a.seq, b.seq) })
	return scans
}

// eachPartition visits the partitions of the container. It seeks from one partition to the next and does not read all
// documents.
func (r *pageBuilder) eachPartition(visit func(pk Partition) bool) {
	all := containerPrefix('D', r.c.number)
	from, end := all, endOfPrefix(all)
	for more := true; more; {
		more = false
		r.reader.Scan(from, end, func(key, _ []byte) bool {
			pk := partitionOfKey(key)
			from = endOfPrefix(partitionPrefix('D', r.c.number, pk))
			more = visit(pk)
			return false
		})
	}
}

// newScan returns the scan of a partition. It returns false if the query does not read the partition.
func (r *pageBuilder) newScan(pk Partition, last uint64) (partitionScan, bool) {
	l := partitionScan{pk: pk}
	seqs, known := r.lookUpCandidates(pk)
	if known {
		i, _ := slices.BinarySearch(seqs, last+1)
		if i == len(seqs) {
			return l, false
		}
		l.seq = seqs[i]
	}
	prefix := partitionPrefix('D', r.c.number, pk)
	r.reader.Scan(prefix, endOfPrefix(prefix), func(key, _ []byte) bool {
		l.first = decodeNumber(key[len(key)-8:])
		return false
	})
	switch {
	case known:
	case l.first > last:
		l.seq = l.first
	default:
		r.reader.Scan(documentKey(r.c.number, pk, last+1), endOfPrefix(prefix), func(key, _ []byte) bool {
			l.seq = decodeNumber(key[len(key)-8:])
			return false
		})
	}
	return l, l.seq > 0
}

// maxEarlyLookups limits the ids that are looked up before the first result of a page. More ids are looked up when
// their partition is read; then they count toward the work of the page.
const maxEarlyLookups = 1 << 20

// lookUpCandidates looks up the documents whose ids the condition names, in the order of insertion. known is false if
// the condition names no ids or too many, or if the id index is damaged (the scan of the partition reports the damage).
func (r *pageBuilder) lookUpCandidates(pk Partition) (seqs []uint64, known bool) {
	switch {
	case r.ids != nil:
		var err error
		if seqs, known = r.found[pk]; !known && r.lookedUp < maxEarlyLookups {
			r.lookedUp += len(r.ids)
			if seqs, err = r.lookUpIDs(pk); err == nil {
				r.found[pk], known = seqs, true
			}
		}
		return seqs, known
	case r.idRange != nil:
		w := r.openWalk(pk)
		return w.seqs, w.done
	}
	return nil, false
}
