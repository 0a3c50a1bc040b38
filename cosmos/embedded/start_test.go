package embedded_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// BenchmarkStart opens a folder of 1 GB that was closed, and one whose process
// was killed.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	engine, _ := open(b, embedded.Options{Dir: dir}, onlySlot)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, disk.FileName))
		require.NoError(b, err)
		return info.Size()
	}
	for first := 0; size() < 1<<30; first += 1600 {
		timed(writers, func(_, i int) {
			answered(b, engine, createRequest(b, engine, hundred(first+100*i, i), i))
		})
	}
	killed := b.TempDir()
	copyFile(b, filepath.Join(dir, disk.FileName), filepath.Join(killed, disk.FileName))
	require.NoError(b, engine.Close())
	for name, dir := range map[string]string{"closed": dir, "killed": killed} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				copied := b.TempDir()
				copyFile(b, filepath.Join(dir, disk.FileName), filepath.Join(copied, disk.FileName))
				began := time.Now()
				engine, err := embedded.Open(embedded.Options{Dir: copied})
				require.NoError(b, err)
				took = append(took, time.Since(began))
				require.NoError(b, engine.Close())
				require.NoError(b, os.RemoveAll(copied))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms/start")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func copyFile(b *testing.B, from, to string) {
	b.Helper()
	src, err := os.Open(from)
	require.NoError(b, err)
	dst, err := os.Create(to)
	require.NoError(b, err)
	_, err = io.Copy(dst, src)
	require.NoError(b, err)
	require.NoError(b, dst.Sync())
	require.NoError(b, dst.Close())
	require.NoError(b, src.Close())
}
