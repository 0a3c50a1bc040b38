package engine

import (
	"cmp"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// idsOf returns the ids to one of which a condition confines the documents,
// nil if it does not. What else it demands is for the caller to test.
func idsOf(q *query.Query) []string {
	for _, p := range q.Analyze().Predicates {
		if !isID(p.Path) || p.In == nil {
			continue
		}
		ids := make([]string, 0, len(p.In))
		for _, v := range p.In {
			if v.Kind == query.String { // no other value is an id
				ids = append(ids, string(v.Text))
			}
		}
		return ids
	}
	return nil
}

// named does what scan does, for a query that names the ids of its documents:
// it looks them up in the id index.
func (r *run) named(pk Partition, last uint64, visit func(seq uint64, s stored, doc []byte) bool) {
	seqs, known := r.found[pk]
	if !known {
		r.slots.CountLookups(len(r.ids))
		for _, id := range r.ids {
			if r.broken = cmp.Or(r.broken, r.ctx.Err()); r.broken != nil {
				return
			}
			_, seq, found, err := r.c.find(r.reader, pk, id)
			if err != nil {
				r.broken, r.brokenAt = err, last+1
				return
			}
			if found {
				seqs = append(seqs, seq)
			}
		}
		slices.Sort(seqs)
		r.found[pk] = seqs
	}
	r.lookUp(pk, seqs, last, visit)
}

// lookUp visits those of the documents that come after last in the order of
// insertion, in which seqs has them.
func (r *run) lookUp(pk Partition, seqs []uint64, last uint64, visit func(seq uint64, s stored, doc []byte) bool) {
	from, _ := slices.BinarySearch(seqs, last+1)
	for _, seq := range seqs[from:] {
		key := documentKey(r.c.number, pk, seq)
		s := readStored(key, r.reader.Get(key))
		r.page.Scanned++
		doc := r.json(seq, s)
		if r.broken != nil || !visit(seq, s, doc) {
			return
		}
	}
}
