package embedded

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// BenchmarkOpen measures how long Open takes to read the properties of all blobs.
func BenchmarkOpen(b *testing.B) {
	const blobs = 20_000
	dir := b.TempDir()
	disk := &failingFiles{left: -1} // failingFiles does not sync; with syncs the benchmark would take minutes
	s, err := openFolder(dir, datafolder.Claim{}, func(root *os.Root) fileSystem { disk.systemFiles = systemFiles{root}; return disk })
	require.NoError(b, err)
	about := &version{ETag: newETag()}
	require.NoError(b, s.makeContainer("exchange", about))
	for n := range blobs {
		d, err := s.newDraft(0)
		require.NoError(b, err)
		require.NoError(b, d.finishWriting())
		now := time.Now().UTC()
		require.NoError(b, s.publishDraft("exchange", &version{
			Name: fmt.Sprintf("2026-11-21/%036d_%036d_data", n, n), ETag: newETag(), Created: now, Modified: now,
			Headers: map[string]string{"Content-Type": "application/octet-stream"}, Metadata: map[string]string{"putid": newETag()}, MD5: make([]byte, 16),
		}, d))
	}
	require.NoError(b, s.closeStore())
	before := new(runtime.MemStats)
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(before)
		a, err := Open(Options{Dir: dir})
		require.NoError(b, err)
		b.StopTimer()
		runtime.GC()
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/blobs, "bytes/blob")
		require.NoError(b, a.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blobs, "ns/blob")
}
