package content_test

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
)

// Concurrent uploads share a pool of buffers. No buffer returns to the pool while its upload still sends
// it, so each object has its own bytes.
func TestPut_KeepsTheBytesOfConcurrentUploadsApart(t *testing.T) {
	const uploads, length = 6, 13 << 20 // bytes; four blocks
	o := inProcess(openAccount(t, "folder"))
	o.Container, o.Create = "side-by-side", true
	b, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	var writing sync.WaitGroup
	failures := make([]error, uploads)
	for i := range uploads {
		writing.Go(func() {
			failures[i] = b.Put(t.Context(), fmt.Sprintf("upload/%d", i), io.LimitReader(repeatedByte(i), length))
		})
	}
	writing.Wait()
	for i := range uploads {
		require.NoError(t, failures[i])
		r, err := b.Open(t.Context(), repository.Section{Object: fmt.Sprintf("upload/%d", i), Length: length})
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, length, bytes.Count(data, []byte{byte(i)}), "upload %d has bytes of others", i)
	}
}

// A repeatedByte is a reader that yields one byte forever.
type repeatedByte byte

func (s repeatedByte) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s)
	}
	return len(p), nil
}
