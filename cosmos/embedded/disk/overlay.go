package disk

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// An updateOverlay is the Tx of one update in a transaction that several updates share. It buffers writes until the
// update's function has succeeded. If the function fails, the writes are dropped, so the shared transaction does not
// change.
type updateOverlay struct {
	commitHooks
	bucket *bbolt.Bucket
	writes *tree // a nil value represents a deletion
}

func (o *updateOverlay) Get(key []byte) []byte {
	if o.writes != nil {
		if p, ok := o.writes.Get(pair{key: key}); ok {
			return p.value
		}
	}
	return o.bucket.Get(key)
}

func (o *updateOverlay) Put(key, value []byte) {
	if value == nil {
		value = []byte{}
	}
	o.setPair(pair{key, value})
}

func (o *updateOverlay) Delete(key []byte) { o.setPair(pair{key: key}) }

func (o *updateOverlay) setPair(p pair) {
	if o.writes == nil {
		o.writes = newTree()
	}
	o.writes.Set(p)
}

// Scan merges the buffered writes with the bucket. For equal keys, the writes take precedence.
func (o *updateOverlay) Scan(from, to []byte, visit func(key, value []byte) bool) {
	var mine []pair
	if o.writes != nil {
		memoryReader{o.writes}.Scan(from, to, func(k, v []byte) bool {
			mine = append(mine, pair{k, v})
			return true
		})
	}
	stopped := false
	give := func(p pair) bool {
		stopped = p.value != nil && !visit(p.key, p.value)
		return !stopped
	}
	scanBucket(o.bucket, from, to, func(k, v []byte) bool {
		for len(mine) > 0 {
			order := bytes.Compare(mine[0].key, k)
			if order > 0 {
				break
			}
			if !give(mine[0]) {
				return false
			}
			mine = mine[1:]
			if order == 0 {
				return true
			}
		}
		return give(pair{k, v})
	})
	for _, p := range mine {
		if stopped || !give(p) {
			return
		}
	}
}

// applyWrites applies the buffered writes to the shared transaction.
func (o *updateOverlay) applyWrites() (err error) {
	if o.writes == nil {
		return nil
	}
	o.writes.Scan(func(p pair) bool {
		if p.value == nil {
			err = o.bucket.Delete(p.key)
		} else {
			err = o.bucket.Put(p.key, p.value)
		}
		return err == nil
	})
	return err
}

// scanBucketBack scans in descending order. It must not be used in a write transaction, in which bbolt's cursor stops
// at an emptied page.
func scanBucketBack(b *bbolt.Bucket, from, to []byte, visit func(key, value []byte) bool) {
	c := b.Cursor()
	step := c.Prev
	if k, _ := c.Seek(to); k == nil {
		step = c.Last
	}
	for k, v := step(); k != nil && bytes.Compare(k, from) >= 0; k, v = c.Prev() {
		if !visit(k, v) {
			return
		}
	}
}

func scanBucket(b *bbolt.Bucket, from, to []byte, visit func(key, value []byte) bool) {
	c := b.Cursor()
	for k, v := c.Seek(from); k != nil && bytes.Compare(k, to) < 0; k, v = c.Next() {
		if !visit(k, v) {
			return
		}
	}
}
