package embedded_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// What the engine costs is told as a ratio to the same work on bare bbolt:
// the same group commit, the same order of keys, documents of the same size,
// measured in the same run. 1 would be an engine that costs nothing.

const bodySize = 700

// A bare store is bbolt with a group commit and nothing else.
type bare struct {
	db    *bbolt.DB
	queue chan bareWrite
	done  chan struct{}
}

type bareWrite struct {
	fn     func(*bbolt.Bucket) error
	answer chan error
}

func openBare(b *testing.B) *bare {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, &bbolt.Options{
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 30, NoStatistics: true,
	})
	require.NoError(b, err)
	require.NoError(b, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("b")); return err }))
	s := &bare{db, make(chan bareWrite, 256), make(chan struct{})}
	go s.run()
	b.Cleanup(func() {
		close(s.queue)
		<-s.done
		require.NoError(b, db.Close())
	})
	return s
}

func (s *bare) run() {
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
			for _, w := range waiting {
				if err := w.fn(tx.Bucket([]byte("b"))); err != nil {
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

func (s *bare) write(fn func(*bbolt.Bucket) error) error {
	w := bareWrite{fn, make(chan error, 1)}
	s.queue <- w
	return <-w.answer
}

// timed runs n operations on 16 writers and returns the time of one.
func timed(n int, do func(worker, i int)) time.Duration {
	began := time.Now()
	var next atomic.Int64
	var workers sync.WaitGroup
	for w := range 16 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				do(w, int(i))
			}
		})
	}
	workers.Wait()
	return time.Since(began) / time.Duration(n)
}

// rounds measures both sides in turns, and reports the ratio of their sums.
func rounds(b *testing.B, n int, ours, theirs func(worker, i int)) {
	b.Helper()
	var a, z time.Duration
	for b.Loop() {
		z += timed(n, theirs)
		a += timed(n, ours)
	}
	b.ReportMetric(float64(z)/float64(a), "of-bare")
	b.ReportMetric(float64(a.Microseconds())/float64(b.N), "µs/op")
	b.ReportMetric(0, "ns/op")
}

func bareKey(worker, i int) []byte {
	return binary.BigEndian.AppendUint64(fmt.Appendf(nil, "D%02d", worker), uint64(i))
}

func body(id, worker, n int) []byte {
	return fmt.Appendf(nil, `{"id":"%08d","pk":"w%02d","n":%d,"data":"%0*d"}`, id, worker, n, bodySize-60, n)
}

// createHundred creates a batch of documents and returns the status.
func createHundred(b *testing.B, engine *embedded.Engine, first, worker int) int {
	var batch bytes.Buffer
	separator := '['
	for i := range 100 {
		fmt.Fprintf(&batch, `%c{"operationType":"Create","resourceBody":%s}`, separator, body(first+i, worker, i))
		separator = ','
	}
	batch.WriteByte(']')
	answer, err := engine.Transport().Do(signed(b, engine, "POST", docsPath, "docs", containerLink, batch.String(),
		"x-ms-documentdb-partitionkey", fmt.Sprintf(`["w%02d"]`, worker), "Prefer", "return=minimal",
		"x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True", "x-ms-cosmos-batch-ordered", "True"))
	if err != nil {
		b.Error(err)
		return 0
	}
	return answer.StatusCode
}

func BenchmarkRatioBatchesOf100Creates(b *testing.B) {
	engine, _ := open(b, embedded.Options{Dir: b.TempDir()}, onlySlot)
	store := openBare(b)
	var ids, keys atomic.Int64
	ours := func(worker, _ int) {
		first := int(ids.Add(100))
		if status := createHundred(b, engine, first, worker); status != 200 {
			b.Error(status)
		}
	}
	theirs := func(worker, _ int) {
		first := int(keys.Add(100))
		require.NoError(b, store.write(func(bucket *bbolt.Bucket) error {
			for i := range 100 {
				if err := bucket.Put(bareKey(worker, first+i), body(first+i, worker, i)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	rounds(b, 160, ours, theirs)
}

func BenchmarkRatioConditionalReplaces(b *testing.B) {
	engine, _ := open(b, embedded.Options{Dir: b.TempDir()}, onlySlot)
	store := openBare(b)
	transport := engine.Transport()
	var etags [16]string
	var requests [16]*http.Request // signed once: that is the client's work
	for w := range etags {
		partition := fmt.Sprintf("w%02d", w)
		answer, err := engine.Transport().Do(signed(b, engine, "POST", docsPath, "docs", containerLink, string(body(1, w, 0)),
			"x-ms-documentdb-partitionkey", `["`+partition+`"]`))
		require.NoError(b, err)
		etags[w] = answer.Header.Get("etag")
		requests[w] = signed(b, engine, "PUT", docsPath+"/00000001", "docs", containerLink+"/docs/00000001", "",
			"x-ms-documentdb-partitionkey", `["`+partition+`"]`, "Prefer", "return=minimal")
	}
	ours := func(worker, i int) {
		req := requests[worker]
		text := body(1, worker, i)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		req.Header.Set("If-Match", etags[worker])
		answer, err := transport.Do(req)
		if err != nil || answer.StatusCode != 200 {
			b.Error(err, answer.StatusCode)
		}
		etags[worker] = answer.Header.Get("etag")
	}
	theirs := func(worker, i int) {
		require.NoError(b, store.write(func(bucket *bbolt.Bucket) error {
			key := bareKey(worker, 1)
			_ = bucket.Get(key) // the condition
			return bucket.Put(key, body(1, worker, i))
		}))
	}
	rounds(b, 2000, ours, theirs)
}

func BenchmarkRatioScanOf60000(b *testing.B) {
	engine, _ := open(b, embedded.Options{Dir: b.TempDir()}, onlySlot)
	store := openBare(b)
	const documents = 60_000
	for first := 0; first < documents; first += 100 {
		require.Equal(b, 200, createHundred(b, engine, first, 0))
		require.NoError(b, store.write(func(bucket *bbolt.Bucket) error {
			for i := range 100 {
				if err := bucket.Put(bareKey(0, first+i), body(first+i, 0, i)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	count := queryRequest(b, engine, "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0", "[]", "x-ms-documentdb-partitionkey", `["w00"]`)
	transport := engine.Transport()
	scan := func() {
		answer, err := transport.Do(count().WithContext(context.Background()))
		require.NoError(b, err)
		require.Equal(b, 200, answer.StatusCode)
	}
	var a, z time.Duration
	for b.Loop() {
		began := time.Now()
		scan()
		a += time.Since(began)
		began = time.Now()
		found := 0
		require.NoError(b, store.db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("b")).ForEach(func(_, value []byte) error {
				if bytes.Contains(value, []byte(`"n":`)) {
					found++
				}
				return nil
			})
		}))
		z += time.Since(began)
		require.Equal(b, documents, found)
	}
	b.ReportMetric(float64(z)/float64(a), "of-bare")
}
