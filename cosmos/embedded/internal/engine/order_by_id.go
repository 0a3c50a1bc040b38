package engine

import (
	"bytes"
	"cmp"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// isServedByID reports whether a page of an ORDER BY can be read from the id index of a logical partition. If an index
// does not answer the whole condition, it cannot: every candidate must be loaded, and charged, before the order is
// known.
func (r *pageBuilder) isServedByID() bool {
	orders := r.q.Query.Orders()
	return r.q.Scoped && r.ids == nil && len(orders) == 1 && isID(orders[0].Path) && r.plan.IndexOnly()
}

// fillOrderedByID adds documents of one logical partition in the order of their ids. A page starts at the last id of
// the previous page. If that document was deleted and created again, it is newer, so the page returns it.
func (r *pageBuilder) fillOrderedByID() {
	skip := r.q.Query.Offset()
	if r.resumed {
		skip = 0
	}
	descending := r.q.Query.Orders()[0].Descending
	from, to := r.idKeys(r.q.Partition)
	if r.resumed {
		from, to = r.keysAfterPosition(from, to, descending)
	}
	scan := r.reader.Scan
	if descending {
		scan = r.reader.ScanBack
	}
	prefix := len(partitionPrefix('I', r.c.number, r.q.Partition))
	last := sortCandidate{key: cloneKey(r.at.keys, nil), seq: r.at.seq}
	scan(from, to, func(key, value []byte) bool {
		id, seq := key[prefix:], decodeNumber(value)
		if r.resumed && seq <= r.at.seq && r.at.keys[0].Kind == query.String && bytes.Equal(id, r.at.keys[0].Text) {
			return true
		}
		if r.remainingResults() == 0 {
			return false
		}
		r.slots.RefuseIfExhausted()
		s, doc := r.readIndexed(string(id), seq)
		if r.broken != nil {
			return false
		}
		if !r.testCondition(s, doc) {
			return true
		}
		if skip > 0 {
			skip--
		} else if !r.addDocument(s, doc) {
			r.continueAfter(pagePosition{seq: last.seq, keys: last.key, ordered: true})
			return false
		}
		last = sortCandidate{key: cloneKey([]query.Value{{Kind: query.String, Text: id}}, last.key), seq: seq}
		return true
	})
}

// keysAfterPosition narrows a key range of the id index to the keys that come after the continuation token, in the
// order of the query.
func (r *pageBuilder) keysAfterPosition(from, to []byte, descending bool) (low, high []byte) {
	at := r.at.keys[0]
	id := idKey(r.c.number, r.q.Partition, string(at.Text))
	switch {
	case at.Kind == query.String && descending:
		return from, lowerKey(to, append(id, 0))
	case at.Kind == query.String:
		return higherKey(from, id), to
	case (at.Kind > query.String) != descending: // in the order of the query, all strings (so all ids) precede this position
		return to, to
	}
	return from, to
}

func lowerKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

func higherKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}

// readIndexed reads the document to which an entry of the id index refers.
func (r *pageBuilder) readIndexed(id string, seq uint64) (storedDocument, []byte) {
	s, err := r.c.readIndexed(r.reader, r.q.Partition, id, seq)
	if r.broken = cmp.Or(r.broken, err); r.broken != nil {
		return storedDocument{}, nil
	}
	r.page.Scanned++
	return s, r.readJSON(seq, s)
}
