package engine

import (
	"cmp"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// An idRange is the range of ids from low, inclusive, to high, exclusive.
type idRange struct {
	low, high string
	bounded   bool // high applies
}

// nextID returns the smallest string greater than id.
func nextID(id string) string { return id + "\x00" }

// findIDRange returns the range to which the indexed part of a condition restricts the ids, or
// nil. A document outside the range is not charged, so the charge is the same whether it is
// read or not.
func findIDRange(plan query.Plan) *idRange {
	var within *idRange
	for _, p := range plan.Confines {
		if !isID(p.Path) || p.In != nil {
			continue
		}
		if within == nil {
			within = &idRange{}
		}
		within.narrowTo(p)
	}
	return within
}

func isID(path rawjson.Path) bool { return len(path) == 1 && !path[0].Array && path[0].Name == "id" }

// narrowTo restricts the range to ids for which the predicate p can hold.
func (i *idRange) narrowTo(p query.Predicate) {
	low, high := i.low, ""
	bounded := false
	for _, b := range []*query.Bound{p.Low, p.High} {
		if b != nil && b.Value.Kind != query.String { // a range lies within one type, and ids are strings
			i.high, i.bounded = "", true
			return
		}
	}
	if p.Low != nil {
		if low = string(p.Low.Value.Text); !p.Low.Inclusive {
			low = nextID(low)
		}
	}
	if p.High != nil {
		if high, bounded = string(p.High.Value.Text), true; p.High.Inclusive {
			high = nextID(high)
		}
	}
	i.low = max(i.low, low)
	if bounded && (!i.bounded || high < i.high) {
		i.high, i.bounded = high, true
	}
}

// hasID reports whether an id is in the range.
func (i *idRange) hasID(id string) bool { return id >= i.low && (!i.bounded || id < i.high) }

// idKeys returns the key range of the query in the id index of a partition; without a range of
// ids, the whole index.
func (r *pageBuilder) idKeys(pk Partition) (from, to []byte) {
	prefix := partitionPrefix('I', r.c.number, pk)
	from, to = prefix, endOfPrefix(prefix)
	if r.idRange != nil {
		from = idKey(r.c.number, pk, r.idRange.low)
		if r.idRange.bounded {
			to = idKey(r.c.number, pk, r.idRange.high)
		}
	}
	return from, to
}

// A rangeWalk reads the entries of one partition's id index in the query's range. It can be
// interrupted and continued.
type rangeWalk struct {
	from, to  []byte // the rest of the range
	seqs      []uint64
	done      bool   // the whole range was read: seqs has all its documents, in the order of insertion
	duplicate uint64 // sequence number of a document to which two entries refer because of damage, or 0
}

const (
	// firstWalkEntries is the number of id index entries that are read before any document.
	firstWalkEntries = 1024
	// walkEntriesPerScan is the number of id index entries that are read for each scanned document.
	walkEntriesPerScan = 16
)

// advanceWalk reads up to n more entries of a walk.
func (r *pageBuilder) advanceWalk(w *rangeWalk, n int) {
	if r.broken = cmp.Or(r.broken, r.ctx.Err()); r.broken != nil || w.done {
		return
	}
	w.done = true
	r.reader.Scan(w.from, w.to, func(key, value []byte) bool {
		if n == 0 {
			w.from, w.done = slices.Clone(key), false
			return false
		}
		n--
		w.seqs = append(w.seqs, decodeNumber(value))
		return true
	})
	if w.done {
		slices.Sort(w.seqs)
		for i := 1; i < len(w.seqs) && w.duplicate == 0; i++ {
			if w.seqs[i] == w.seqs[i-1] {
				w.duplicate = w.seqs[i]
			}
		}
	}
}

// scanRange is scanPartition for a query that restricts the ids to a range. The results must be
// in the order of insertion, which the id index does not have, so the whole range must be known
// before the first result. If the range is most of the partition, a scan finds a page of
// results sooner. So scanRange alternates between scanning the partition and reading the range of
// the index. When it has read the range, it looks up the remaining documents.
func (r *pageBuilder) scanRange(pk Partition, last uint64, visit func(seq uint64, s storedDocument, doc []byte) bool) {
	w := r.openWalk(pk)
	if !w.done {
		more := true
		r.scanDocuments(pk, last, func(seq uint64, s storedDocument, doc []byte) bool {
			last = seq
			if more = visit(seq, s, doc); more {
				r.advanceWalk(w, walkEntriesPerScan)
			}
			return more && !w.done && r.broken == nil
		})
		if !more {
			return
		}
	}
	if !w.done || r.broken != nil {
		return
	}
	r.visitFound(pk, w.seqs, last, func(seq uint64, s storedDocument, doc []byte) bool {
		if seq == w.duplicate || !r.idRange.hasID(documentID(doc)) {
			r.broken, r.brokenAt = r.c.newIndexDamageError(pk, seq), seq
			return false
		}
		return visit(seq, s, doc)
	})
}

// openWalk returns the walk of the query's range of ids in a partition.
func (r *pageBuilder) openWalk(pk Partition) *rangeWalk {
	w := r.walks[pk]
	if w == nil {
		w = &rangeWalk{}
		w.from, w.to = r.idKeys(pk)
		r.walks[pk] = w
		r.advanceWalk(w, firstWalkEntries)
	}
	return w
}
