package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// sweepBatch is how many documents a transaction of Sweep removes at most, so that writers do not wait long.
const sweepBatch = 100

// An expiredDocument is a document that has expired.
type expiredDocument struct {
	pk   Partition
	id   string
	size int
	rest int // terms
}

// Sweep removes expired documents and returns their number. It calls pay with the charge of each removal, and stops if
// pay returns false.
func (e *Engine) Sweep(ctx context.Context, pay func(*Container, Partition, Charge) bool) (removed int, err error) {
	for _, db := range e.Databases() {
		for _, c := range db.containers {
			if c.ttl == nil {
				continue
			}
			n, err := e.sweepContainer(ctx, c, pay)
			removed += n
			if err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

func (e *Engine) sweepContainer(ctx context.Context, c *Container, pay func(*Container, Partition, Charge) bool) (removed int, err error) {
	from := containerPrefix('D', c.number)
	for from != nil {
		var batch []expiredDocument
		if batch, from, err = e.findExpired(c, from); err != nil {
			return removed, err
		}
		for i, o := range batch {
			if !pay(c, o.pk, deleteCharge(o.size, o.rest)) {
				batch, from = batch[:i], nil
				break
			}
		}
		n, err := e.removeExpired(ctx, c, batch)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// findExpired returns a batch of expired documents, starting at the key from. next is the key at which the next batch
// starts.
func (e *Engine) findExpired(c *Container, from []byte) (batch []expiredDocument, next []byte, err error) {
	now := e.clock()
	end := endOfPrefix(containerPrefix('D', c.number))
	err = e.store.View(func(r disk.Reader) (err error) {
		r.Scan(from, end, func(key, value []byte) bool {
			if len(batch) == sweepBatch {
				next = slices.Clone(key)
				return false
			}
			s := readStored(key, value)
			if !c.hasExpired(s, now) {
				return true
			}
			var doc []byte
			if doc, err = s.readJSON(r, c); err != nil {
				return false
			}
			batch = append(batch, expiredDocument{partitionOfKey(key), documentID(doc), s.size, s.terms})
			return true
		})
		return err
	})
	return batch, next, err
}

// partitionOfKey returns the partition in the key of a document.
func partitionOfKey(key []byte) Partition { return Partition(key[7 : len(key)-8]) }

func documentID(doc []byte) string {
	id := ""
	_ = rawjson.EachMember(doc, func(name, value []byte) bool { // cannot fail, because doc is valid
		if rawjson.IsName(name, "id") {
			text, _ := rawjson.Unquote(value)
			id = string(text)
			return false
		}
		return true
	})
	return id
}

func (e *Engine) removeExpired(ctx context.Context, c *Container, batch []expiredDocument) (removed int, err error) {
	if len(batch) == 0 {
		return 0, nil
	}
	_, err = e.runWrite(ctx, c, Consistency{}, func(w *writeTransaction) error {
		for _, o := range batch {
			w.pk = o.pk
			before, grown := w.version, w.grown
			s, seq, ok, err := c.findDocument(w.tx, o.pk, o.id)
			if err != nil {
				return err
			}
			if !ok || !c.hasExpired(s, w.now) {
				continue // the document has been written again
			}
			w.removeDocument(o.id, s, seq)
			if err := w.recordUsage(before, grown); err != nil {
				return err
			}
			removed++
		}
		return nil
	})
	var gone *Error
	if errors.As(err, &gone) && gone.Status == 404 { // the container has been deleted
		return 0, nil
	}
	return removed, err
}
