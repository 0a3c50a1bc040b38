package embedded_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A discardWriter is a ResponseWriter that discards the body.
type discardWriter struct {
	header http.Header
	status int
}

func (d *discardWriter) Header() http.Header         { return d.header }
func (d *discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (d *discardWriter) WriteHeader(status int)      { d.status = status }

// BenchmarkPointReadAboveEmptyHandler reports the time of a point read minus the time of an empty handler.
func BenchmarkPointReadAboveEmptyHandler(b *testing.B) {
	engine, c := openEngine(b, embedded.Options{Dir: b.TempDir()})
	createDocs(b, c, newDoc("a", 1))
	request := readRequest(b, engine)
	serve := func(h http.Handler) time.Duration {
		const reads = 20 // few enough reads to fit in one time slice of the scheduler
		began := time.Now()
		for range reads {
			client := &discardWriter{header: http.Header{}}
			h.ServeHTTP(client, request)
			if client.status != http.StatusOK {
				b.Fatal(client.status)
			}
		}
		return time.Since(began) / reads
	}
	ours := engine.Handler()
	empty := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	var above []time.Duration
	for b.Loop() {
		above = append(above, serve(ours)-serve(empty))
	}
	slices.Sort(above)
	b.ReportMetric(float64(above[len(above)/2].Nanoseconds())/1000, "µs-above-empty")
	b.ReportMetric(0, "ns/op")
}

// growFolder creates documents with the numbers first <= n < end.
func growFolder(b *testing.B, engine *embedded.Engine, first, end int) {
	b.Helper()
	batches := (end - first) / 100
	timeWriters(batches, func(w, i int) {
		requireAnswered(b, engine, createRequest(b, engine, hundredDocs(first+100*i, w), w))
	})
}

// BenchmarkHeap reports the heap after reads from folders with different numbers of documents.
func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		dir, have := b.TempDir(), 0
		for _, documents := range []int{10_000, 100_000, 1_000_000} {
			engine, err := embedded.Open(embedded.Options{Dir: dir})
			require.NoError(b, err)
			if have == 0 {
				newContainer(b, engine, onlySlot)
			}
			growFolder(b, engine, have, documents)
			have = documents
			require.NoError(b, engine.Close())

			engine, err = embedded.Open(embedded.Options{Dir: dir})
			require.NoError(b, err)
			count := queryRequest(b, engine, "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0", "[]", "x-ms-documentdb-partitionkey", `["w00"]`)
			requireAnswered(b, engine, count())
			runtime.GC()
			runtime.GC() // a second GC frees memory that finalizers retained
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.HeapInuse)/(1<<20), fmt.Sprintf("MB-with-%dk", documents/1000))
			require.NoError(b, engine.Close())
		}
		require.NoError(b, os.RemoveAll(dir))
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStart opens a folder of 1 GB, as after a process was killed.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, disk.FileName)
	engine, _ := openEngine(b, embedded.Options{Dir: dir}, onlySlot)
	size := func() int64 {
		info, err := os.Stat(path)
		require.NoError(b, err)
		return info.Size()
	}
	for first := 0; size() < 1<<30; first += 10_000 {
		growFolder(b, engine, first, first+10_000)
	}
	copied := b.TempDir()
	require.NoError(b, copyFile(path, filepath.Join(copied, disk.FileName)))
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		engine, err := embedded.Open(embedded.Options{Dir: copied})
		require.NoError(b, err)
		took = append(took, time.Since(began))
		require.NoError(b, engine.Close())
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds(), "s/start")
	b.ReportMetric(0, "ns/op")
}

// copyFile copies the file of an open store. The copy equals the file after a kill.
func copyFile(from, to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.ReadFrom(source)
	return errors.Join(err, f.Sync(), f.Close(), source.Close())
}
