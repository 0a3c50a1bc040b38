package engine

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// findNamedIDs returns the only ids that can satisfy a condition, or nil if there is no such restriction. The caller
// tests the rest of the condition.
func findNamedIDs(q *query.Query) []string {
	for _, p := range q.Analyze().Predicates {
		if !isID(p.Path) || p.In == nil {
			continue
		}
		ids := make([]string, 0, len(p.In))
		for _, v := range p.In {
			if v.Kind == query.String { // only strings are ids
				ids = append(ids, string(v.Text))
			}
		}
		return ids
	}
	return nil
}

// scanByID is scanPartition for a query that names ids. It looks the ids up in the id index.
func (r *pageBuilder) scanByID(pk Partition, last uint64, visit func(seq uint64, s storedDocument, doc []byte) bool) {
	seqs, known := r.found[pk]
	if !known {
		r.slots.CountLookups(len(r.ids))
		var err error
		if seqs, err = r.lookUpIDs(pk); err != nil {
			if r.broken = err; r.ctx.Err() == nil {
				r.brokenAt = last + 1
			}
			return
		}
		r.found[pk] = seqs
	}
	r.visitFound(pk, seqs, last, visit)
}

// lookUpIDs finds the documents of a partition whose id the query names.
func (r *pageBuilder) lookUpIDs(pk Partition) (seqs []uint64, err error) {
	for _, id := range r.ids {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		_, seq, found, err := r.c.findDocument(r.reader, pk, id)
		if err != nil {
			return nil, err
		}
		if found {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs, nil
}

// idsBeforeJump is how many ids of a partition are read one by one before the scan seeks.
const idsBeforeJump = 16

// eachPartitionWithID visits each partition that contains a document with one of the ids. It reads only the id index:
// the first idsBeforeJump ids of a partition, and then only the requested ids.
func (r *pageBuilder) eachPartitionWithID(visit func(pk Partition) bool) {
	ids := slices.Sorted(slices.Values(r.ids))
	from := containerPrefix('I', r.c.number)
	end := endOfPrefix(from)
	for from != nil && len(ids) > 0 {
		start := from
		from = nil
		var partition []byte // key prefix of the current partition
		read := 0            // number of ids that were read in this partition
		found := false       // true if the partition contains one of the ids
		r.reader.Scan(start, end, func(key, _ []byte) bool {
			if partition == nil || !bytes.HasPrefix(key, partition) {
				if partition = idPrefix(key); partition == nil {
					return true // a damaged key, which Check reports
				}
				read, found = 0, false
				if r.broken = cmp.Or(r.broken, r.ctx.Err()); r.broken != nil {
					return false
				}
			}
			id := string(key[len(partition):])
			next, is := slices.BinarySearch(ids, id)
			if is && !found {
				if found = true; !visit(Partition(partition[7:])) {
					return false
				}
			}
			if read++; read < idsBeforeJump {
				return true
			}
			if from = endOfPrefix(partition); !found && next < len(ids) {
				from = append(slices.Clone(partition), ids[next]...)
			}
			return false
		})
	}
}

// idPrefix returns the part of an id index key in front of the id. It returns nil if key has a different form.
func idPrefix(key []byte) []byte {
	if len(key) < 7 {
		return nil
	}
	if n := 7 + int(binary.BigEndian.Uint16(key[5:])); n > 7 && n <= len(key) {
		return key[:n]
	}
	return nil
}

// visitFound visits the documents in seqs that were inserted after last. seqs must be in the order of insertion.
func (r *pageBuilder) visitFound(pk Partition, seqs []uint64, last uint64, visit func(seq uint64, s storedDocument, doc []byte) bool) {
	from, _ := slices.BinarySearch(seqs, last+1)
	for _, seq := range seqs[from:] {
		key := documentKey(r.c.number, pk, seq)
		s := readStored(key, r.reader.Get(key))
		r.page.Scanned++
		doc := r.readJSON(seq, s)
		if r.broken != nil || !visit(seq, s, doc) {
			return
		}
	}
}
