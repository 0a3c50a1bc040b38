package ledger

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// gzipOf returns a gzip file whose uncompressed content has n bytes.
func gzipOf(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.CopyN(w, zeros{}, n)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestGzipBombIsRefused(t *testing.T) {
	for _, tc := range []struct {
		plain int64
		isBad bool
	}{{minInflated, false}, {minInflated + 1, true}} {
		file := gzipOf(t, tc.plain)
		require.Less(t, int64(len(file))*maxInflation, tc.plain, "it is a bomb if it is larger than small files may be")
		r, err := inflateFile(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, r)
		require.LessOrEqual(t, n, int64(minInflated))
		if tc.isBad {
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
			require.ErrorContains(t, err, "more than 200 bytes for each compressed one")
		} else {
			require.NoError(t, err)
		}
	}
}
