package embedded

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoBitOfTheStoredPropertiesMayFlip(t *testing.T) {
	v := &version{
		Name: "a/b", ETag: newETag(), Created: time.Unix(1, 0).UTC(), Modified: time.Unix(2, 0).UTC(),
		Headers: map[string]string{"Content-Type": "application/xml"}, MD5: []byte("0123456789abcdef"), Metadata: map[string]string{"a": "b"}, size: 7,
	}
	tail, err := encodeVersion(v)
	require.NoError(t, err)
	whole := slices.Concat([]byte("content"), tail)
	decode := func(data []byte) (*version, error) { return decodeVersion(bytes.NewReader(data), int64(len(data))) }
	got, err := decode(whole)
	require.NoError(t, err)
	require.Equal(t, v, got)
	for i := len("content"); i < len(whole); i++ {
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 1 << bit
			_, err := decode(damaged)
			require.Error(t, err, "bit %d of byte %d", bit, i)
		}
	}
	for n := range whole {
		_, err := decode(whole[:n])
		require.Error(t, err, "%d bytes", n)
	}
}
