package embedded_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// A bareStore is bbolt with a group commit, with which benchmarks compare the engine. Except for the fill percentage of
// pages, it uses the bbolt options of the engine.
type bareStore struct {
	db    *bbolt.DB
	queue chan bareWrite
	done  chan struct{}
}

type bareWrite struct {
	fn     func(*bbolt.Bucket) error
	answer chan error
}

var bareBucket = []byte("b")

func openBare(b *testing.B) *bareStore {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, &bbolt.Options{
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 30, NoStatistics: true,
	})
	require.NoError(b, err)
	require.NoError(b, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(bareBucket); return err }))
	s := &bareStore{db, make(chan bareWrite, 256), make(chan struct{})}
	go s.commitLoop()
	b.Cleanup(func() {
		close(s.queue)
		<-s.done
		require.NoError(b, db.Close())
	})
	return s
}

func (s *bareStore) commitLoop() {
	defer close(s.done)
	for first := range s.queue {
		waiting := []bareWrite{first}
		for more := true; more && len(waiting) < 256; {
			select {
			case w, open := <-s.queue:
				if more = open; open {
					waiting = append(waiting, w)
				}
			default:
				more = false
			}
		}
		err := s.db.Update(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket(bareBucket)
			for _, w := range waiting {
				if err := w.fn(bucket); err != nil {
					return err
				}
			}
			return nil
		})
		for _, w := range waiting {
			w.answer <- err
		}
	}
}

func (s *bareStore) writeGrouped(fn func(*bbolt.Bucket) error) error {
	w := bareWrite{fn, make(chan error, 1)}
	s.queue <- w
	return <-w.answer
}

// scanAll visits all documents in the order of their keys.
func (s *bareStore) scanAll(visit func(doc []byte)) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bareBucket).ForEach(func(_, doc []byte) error {
			visit(doc)
			return nil
		})
	})
}

// bareKey returns a key that sorts as in the engine: by partition, then by insertion.
func bareKey(worker, i int) []byte {
	return binary.BigEndian.AppendUint64(fmt.Appendf(nil, "D%02d", worker), uint64(i))
}
