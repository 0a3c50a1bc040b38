package engine

import (
	"bytes"
	"cmp"
	"encoding/binary"
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

// scanNamed does what scan does, for a query that names the ids of its documents:
// it looks them up in the id index.
func (r *pageBuilder) scanNamed(pk Partition, last uint64, visit func(seq uint64, s storedDocument, doc []byte) bool) {
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

// lookUpIDs finds the documents of a partition that have one of the ids.
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

// idsBeforeJump is how many ids of a partition are read before jumping over the rest.
const idsBeforeJump = 16

// eachPartitionWithID visits the partitions in which a document has one of the ids. It reads the
// id index and no document. Of a partition with many ids, it reads the first of them,
// and jumps to those that it looks for.
func (r *pageBuilder) eachPartitionWithID(visit func(pk Partition) bool) {
	ids := slices.Sorted(slices.Values(r.ids))
	from := containerPrefix('I', r.c.number)
	end := endOfPrefix(from)
	for from != nil && len(ids) > 0 {
		start := from
		from = nil
		var partition []byte // what the keys of the current one begin with
		read := 0            // of its ids
		found := false       // one of them is one of ids
		r.reader.Scan(start, end, func(key, _ []byte) bool {
			if partition == nil || !bytes.HasPrefix(key, partition) {
				if partition = idPrefix(key); partition == nil {
					return true // damaged, as Check reports
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

// idPrefix returns the part of a key of the id index before the id, nil if the key is
// not one.
func idPrefix(key []byte) []byte {
	if len(key) < 7 {
		return nil
	}
	if n := 7 + int(binary.BigEndian.Uint16(key[5:])); n > 7 && n <= len(key) {
		return key[:n]
	}
	return nil
}

// visitFound visits those of the documents that come after last in the order of
// insertion, in which seqs has them.
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
