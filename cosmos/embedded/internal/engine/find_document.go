package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// findDocument finds a document by its id. It returns an error if the index entry refers to no document, or to one with
// a different id.
func (c *Container) findDocument(r disk.State, pk Partition, id string) (s storedDocument, seq uint64, found bool, err error) {
	entry := r.Get(idKey(c.number, pk, id))
	if entry == nil {
		return storedDocument{}, 0, false, nil
	}
	seq = decodeNumber(entry)
	s, err = c.readIndexed(r, pk, id, seq)
	return s, seq, err == nil, err
}

// readIndexed reads the document to which the index entry of id refers.
func (c *Container) readIndexed(r disk.State, pk Partition, id string, seq uint64) (storedDocument, error) {
	key := documentKey(c.number, pk, seq)
	b := r.Get(key)
	s := readStored(key, b)
	if b != nil && (hasID(s.readUnchecked(r, c), id) || s.isDamaged(r, c)) { // a damaged document is accepted, so that it can be deleted
		return s, nil
	}
	return storedDocument{}, c.damagedIndex(pk, id)
}

func (c *Container) damagedIndex(pk Partition, id string) error {
	return &DamageError{pk, fmt.Errorf("%w: database %q, container %q, partition %s: the id index entry of document %q is wrong",
		disk.ErrDamaged, c.Database, c.ID, pk, id)}
}

// DocumentByRID returns the id of the document in partition pk whose resource id is rid.
func (e *Engine) DocumentByRID(c *Container, pk Partition, rid string) (id string, found bool) {
	text, err := parseRID(rid)
	if err != nil || len(text) != len(c.ridBytes)+8 || !bytes.HasPrefix(text, c.ridBytes) {
		return "", false
	}
	seq := binary.BigEndian.Uint64(text[len(c.ridBytes):])
	_ = e.viewState(Consistency{}, func(r disk.Reader) error { // the error is ignored, because reading the document then reports it
		key := documentKey(c.number, pk, seq)
		b := r.Get(key)
		if b == nil {
			return nil
		}
		var err error
		id, _, err = readIDAndTTL(readStored(key, b).readUnchecked(r, c))
		found = err == nil
		return nil
	})
	return id, found
}

// newIndexDamageError returns the error for an index entry whose document has a different id.
func (c *Container) newIndexDamageError(pk Partition, seq uint64) error {
	return &DamageError{pk, fmt.Errorf("%w: database %q, container %q, partition %s: the id index refers to document number %d "+
		"that has another id", disk.ErrDamaged, c.Database, c.ID, pk, seq)}
}

// hasID reports whether doc has the given id.
func hasID(doc []byte, id string) (has bool) {
	_ = rawjson.EachMember(doc, func(name, value []byte) bool { // a truncated document counts as having no id
		if !rawjson.IsName(name, "id") {
			return true
		}
		text, ok := rawjson.Unquote(value)
		has = ok && string(text) == id
		return false
	})
	return has
}

func (s storedDocument) isDamaged(r disk.State, c *Container) bool {
	_, err := s.readJSON(r, c)
	return err != nil
}
