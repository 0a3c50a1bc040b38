package content_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// BenchmarkBlobs puts and opens content in an account in a folder. 50 MB is the maximum of a bundle. The
// allocated memory does not depend on the size of the content.
func BenchmarkBlobs(b *testing.B) {
	for _, size := range []int{800 << 10, 50 << 20, 200 << 20} {
		account, err := embedded.Open(embedded.Options{Dir: b.TempDir()})
		require.NoError(b, err)
		defer account.Close()
		o := inProcess(account)
		o.Container, o.Create = "bench", true
		blobs, err := content.OpenBlobs(b.Context(), o)
		require.NoError(b, err)
		data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		require.NoError(b, blobs.Put(b.Context(), "object", bytes.NewReader(data)))
		b.Run(fmt.Sprintf("put %d KB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, blobs.Put(b.Context(), "put", bytes.NewReader(data)))
				b.StopTimer()
				require.NoError(b, blobs.Delete(b.Context(), "put"))
				b.StartTimer()
			}
		})
		b.Run(fmt.Sprintf("open %d KB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			buffer := make([]byte, 64<<10)
			for b.Loop() {
				r, err := blobs.Open(b.Context(), repository.Section{Object: "object", Length: int64(size)})
				require.NoError(b, err)
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, buffer)
				require.NoError(b, err)
				require.Equal(b, int64(size), n)
				require.NoError(b, r.Close())
			}
		})
	}
}
