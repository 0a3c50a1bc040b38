package engine

import (
	"cmp"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// An idRange is the range low <= id < high.
type idRange struct {
	low, high string
	bounded   bool // high applies
}

// nextID returns the smallest string greater than id.
func nextID(id string) string { return id + "\x00" }

// findIDRange returns the range of ids that the indexed part of a condition allows, or nil. Documents outside the range
// are never charged, so using the range does not change the charge.
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

// narrowTo narrows the range to ids for which p can be true.
func (i *idRange) narrowTo(p query.Predicate) {
	low, high := i.low, ""
	bounded := false
	for _, b := range []*query.Bound{p.Low, p.High} {
		if b != nil && b.Value.Kind != query.String { // ids are strings, so a bound of any other type excludes all ids
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

// hasID reports whether the range includes an id.
func (i *idRange) hasID(id string) bool { return id >= i.low && (!i.bounded || id < i.high) }

// idKeys returns the key range in a partition's id index that the query needs: its range of ids, or the whole index.
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

// A rangeWalk reads the query's range of one partition's id index. It can stop and continue.
type rangeWalk struct {
	from, to  []byte // the unread rest of the range
	seqs      []uint64
	done      bool   // the range is completely read; seqs contains all documents, in the order of insertion
	duplicate uint64 // sequence number to which two damaged entries refer, or 0
}

const (
	// firstWalkEntries is how many id index entries are read before any document.
	firstWalkEntries = 1024
	// walkEntriesPerScan is how many id index entries are read per scanned document.
	walkEntriesPerScan = 16
)

// advanceWalk reads up to n more entries of the index.
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

// scanRange is scanPartition for a query with a range of ids. Results must be in the order of insertion, but the id
// index is sorted by id, so the whole range must be read before the first result. If the range is most of the
// partition, scanning finds a page of results sooner. scanRange therefore alternates between a scan of the partition
// and a walk through the range. After the walk it looks up the remaining documents.
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

// openWalk returns the rangeWalk for a partition. It continues an existing one.
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
