package engine

import (
	"fmt"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// find looks a document up by its id. It fails if the index leads to another
// document, or to none.
func (c *Container) find(r disk.State, pk Partition, id string) (s stored, seq uint64, found bool, err error) {
	entry := r.Get(idKey(c.number, pk, id))
	if entry == nil {
		return stored{}, 0, false, nil
	}
	seq = number(entry)
	key := documentKey(c.number, pk, seq)
	b := r.Get(key)
	s = readStored(key, b)
	if b != nil && (hasID(s.unchecked(r, c), id) || s.isDamaged(r, c)) { // a damaged one says so itself, and can be deleted
		return s, seq, true, nil
	}
	return stored{}, 0, false, c.damagedIndex(pk, id)
}

func (c *Container) damagedIndex(pk Partition, id string) error {
	return &DamageError{pk, fmt.Errorf("%w: database %q, container %q, partition %s: the id index does not lead to document %q; "+
		"restore the folder from a copy", disk.ErrDamaged, c.Database, c.ID, pk, id)}
}

// hasID reports whether id is the id of a document.
func hasID(doc []byte, id string) (has bool) {
	_ = rawjson.EachMember(doc, func(name, value []byte) bool { // what ends too soon has no id
		if !rawjson.IsName(name, "id") {
			return true
		}
		text, ok := rawjson.Unquote(value)
		has = ok && string(text) == id
		return false
	})
	return has
}

func (s stored) isDamaged(r disk.State, c *Container) bool {
	_, err := s.json(r, c)
	return err != nil
}
