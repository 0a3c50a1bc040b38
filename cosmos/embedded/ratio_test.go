package embedded_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// These benchmarks report the cost of the engine as a ratio to bare bbolt doing the same work, with the same group
// commit, the same order of keys and the same documents. A ratio of 1 means that the engine adds no cost.
//
// Because other load on the machine disturbs times, the engine and bbolt alternate in short rounds and take turns being
// first. The result is the median of the ratios of all rounds. The client's work, such as signing requests, is done
// before each round, as is building the documents for bbolt.

const (
	writers  = 16
	bodySize = 700
)

// timeWriters runs n operations on all writers and returns the total time.
func timeWriters(n int, do func(worker, i int)) time.Duration {
	runtime.GC() // collect the garbage of the previous round now, so that it does not slow down this round
	began := time.Now()
	var next atomic.Int64
	var workers sync.WaitGroup
	for w := range writers {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(w, int(i))
			}
		})
	}
	workers.Wait()
	return time.Since(began)
}

// measureRounds runs rounds of n operations. It reports two medians: the time of theirs divided by the time of ours,
// and the time per operation of ours.
func measureRounds(b *testing.B, n int, round func() (ours, theirs func() time.Duration)) {
	b.Helper()
	var ratios, times []float64
	for b.Loop() {
		ours, theirs := round()
		var our, their time.Duration
		if len(ratios)%2 == 0 {
			our, their = ours(), theirs()
		} else {
			their, our = theirs(), ours()
		}
		ratios = append(ratios, float64(their)/float64(our))
		times = append(times, float64(our.Nanoseconds())/float64(n)/1000)
	}
	slices.Sort(ratios)
	slices.Sort(times)
	b.ReportMetric(ratios[len(ratios)/2], "of-bare")
	b.ReportMetric(times[len(times)/2], "µs/op")
	b.ReportMetric(0, "ns/op")
}

func smallDoc(id, worker, n int) []byte {
	return fmt.Appendf(nil, `{"id":"%08d","pk":"w%02d","n":%d,"data":"%0*d"}`, id, worker, n, bodySize-60, n)
}

// hundredDocs returns a batch of 100 documents.
func hundredDocs(first, worker int) (docs [][]byte) {
	for i := range 100 {
		docs = append(docs, smallDoc(first+i, worker, i))
	}
	return docs
}

// createRequest returns the request of a transactional batch that creates documents.
func createRequest(b *testing.B, engine *embedded.Engine, docs [][]byte, worker int) *http.Request {
	var batch bytes.Buffer
	separator := '['
	for _, doc := range docs {
		fmt.Fprintf(&batch, `%c{"operationType":"Create","resourceBody":%s}`, separator, doc)
		separator = ','
	}
	batch.WriteByte(']')
	return signedRequest(b, engine, "POST", docsPath, "docs", containerLink, batch.String(),
		"x-ms-documentdb-partitionkey", fmt.Sprintf(`["w%02d"]`, worker), "Prefer", "return=minimal",
		"x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True", "x-ms-cosmos-batch-ordered", "True")
}

// requireAnswered sends a request, and fails the benchmark unless it succeeds.
func requireAnswered(b *testing.B, engine *embedded.Engine, req *http.Request) *http.Response {
	answer, err := engine.Transport().Do(req)
	if err != nil {
		b.Error(err)
		return &http.Response{Header: http.Header{}}
	}
	if answer.StatusCode != 200 {
		text, err := io.ReadAll(answer.Body)
		b.Error(answer.Status, string(text), err)
	}
	return answer
}

func (s *bareStore) createDocs(first, worker int, docs [][]byte) error {
	return s.writeGrouped(func(bucket *bbolt.Bucket) error {
		for i, doc := range docs {
			if err := bucket.Put(bareKey(worker, first+i), doc); err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkRatioBatchesOf100Creates(b *testing.B) {
	engine, _ := openEngine(b, embedded.Options{Dir: b.TempDir()}, onlySlot)
	store := openBare(b)
	const batches = 64
	type work struct {
		first, worker int
		docs          [][]byte
		request       *http.Request
	}
	made := 0
	measureRounds(b, batches, func() (ours, theirs func() time.Duration) {
		todo := make([]work, batches)
		for i := range todo {
			docs := hundredDocs(made, i%writers)
			todo[i] = work{made, i % writers, docs, createRequest(b, engine, docs, i%writers)}
			made += len(docs)
		}
		return func() time.Duration {
				return timeWriters(batches, func(_, i int) { requireAnswered(b, engine, todo[i].request) })
			}, func() time.Duration {
				return timeWriters(batches, func(_, i int) {
					if err := store.createDocs(todo[i].first, todo[i].worker, todo[i].docs); err != nil {
						b.Error(err)
					}
				})
			}
	})
}

func BenchmarkRatioConditionalReplaces(b *testing.B) {
	engine, _ := openEngine(b, embedded.Options{Dir: b.TempDir()}, onlySlot)
	store := openBare(b)
	var etags [writers]string
	var requests [writers]*http.Request
	for w := range etags {
		requireAnswered(b, engine, createRequest(b, engine, [][]byte{smallDoc(1, w, 0)}, w))
		partition := fmt.Sprintf(`["w%02d"]`, w)
		read := requireAnswered(b, engine, signedRequest(b, engine, "GET", docsPath+"/00000001", "docs", containerLink+"/docs/00000001", "",
			"x-ms-documentdb-partitionkey", partition))
		etags[w] = read.Header.Get("etag")
		requests[w] = signedRequest(b, engine, "PUT", docsPath+"/00000001", "docs", containerLink+"/docs/00000001", "",
			"x-ms-documentdb-partitionkey", partition, "Prefer", "return=minimal")
	}
	const replaces = 1000
	measureRounds(b, replaces, func() (ours, theirs func() time.Duration) {
		return func() time.Duration {
				return timeWriters(replaces, func(w, i int) {
					req, doc := requests[w], smallDoc(1, w, i)
					req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(doc)), int64(len(doc))
					req.Header.Set("If-Match", etags[w])
					etags[w] = requireAnswered(b, engine, req).Header.Get("etag")
				})
			}, func() time.Duration {
				return timeWriters(replaces, func(w, i int) {
					doc := smallDoc(1, w, i)
					if err := store.writeGrouped(func(bucket *bbolt.Bucket) error {
						key := bareKey(w, 1)
						_ = bucket.Get(key) // the condition
						return bucket.Put(key, doc)
					}); err != nil {
						b.Error(err)
					}
				})
			}
	})
}

// newFilled returns an engine and a bbolt store that contain the same documents.
func newFilled(b *testing.B, documents int) (*embedded.Engine, *bareStore) {
	engine, _ := openEngine(b, embedded.Options{Dir: b.TempDir()}, onlySlot)
	store := openBare(b)
	for first := 0; first < documents; first += 100 {
		docs := hundredDocs(first, 0)
		requireAnswered(b, engine, createRequest(b, engine, docs, 0))
		require.NoError(b, store.createDocs(first, 0, docs))
	}
	return engine, store
}

const scanned = 60_000

// BenchmarkRatioScanOf60000 runs a query that reads every document and returns a single number.
func BenchmarkRatioScanOf60000(b *testing.B) {
	engine, store := newFilled(b, scanned)
	count := queryRequest(b, engine, "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0", "[]", "x-ms-documentdb-partitionkey", `["w00"]`)
	measureRounds(b, 1, func() (ours, theirs func() time.Duration) {
		return func() time.Duration {
				defer runtime.GC()
				began := time.Now()
				answer := requireAnswered(b, engine, count())
				took := time.Since(began)
				text, err := io.ReadAll(answer.Body)
				require.NoError(b, err)
				require.Contains(b, string(text), `"Documents":[60000]`)
				return took
			}, func() time.Duration {
				found := 0
				began := time.Now()
				err := store.scanAll(func(doc []byte) {
					if bytes.Contains(doc, []byte(`"n":`)) {
						found++
					}
				})
				took := time.Since(began)
				require.NoError(b, err)
				require.Equal(b, scanned, found)
				return took
			}
	})
}

// BenchmarkRatioPagesOf60000 runs a query that returns all documents, in pages of 4 MB.
func BenchmarkRatioPagesOf60000(b *testing.B) {
	engine, store := newFilled(b, scanned)
	all := queryRequest(b, engine, "SELECT * FROM c", "[]", "x-ms-documentdb-partitionkey", `["w00"]`)
	measureRounds(b, 1, func() (ours, theirs func() time.Duration) {
		return func() time.Duration {
				defer runtime.GC()
				began := time.Now()
				size := int64(0)
				req := all()
				for token := "-"; token != ""; {
					answer := requireAnswered(b, engine, req)
					size += answer.ContentLength
					token = answer.Header.Get("x-ms-continuation")
					req = all()
					req.Header.Set("x-ms-continuation", token)
				}
				req.Header.Del("x-ms-continuation")
				took := time.Since(began)
				require.Greater(b, size, int64(scanned*bodySize))
				return took
			}, func() time.Duration {
				began := time.Now()
				var page []byte
				size := 0
				err := store.scanAll(func(doc []byte) {
					if len(page)+len(doc) > 4<<20 {
						size, page = size+len(page), nil
					}
					if page == nil {
						page = make([]byte, 0, 4<<20)
					}
					page = append(page, doc...)
				})
				took := time.Since(began)
				require.NoError(b, err)
				require.GreaterOrEqual(b, size+len(page), scanned*(bodySize-60))
				return took
			}
	})
}
