package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDecodeVersion_FindsEachFlippedBit(t *testing.T) {
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

func TestReadVersion_ReportsANewerFormatNotDamage(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	tail, err := encodeVersion(&version{Name: "a"})
	require.NoError(t, err)
	tail[len(tail)-1]++
	require.NoError(t, root.WriteFile("blob", tail, 0o600))
	_, err = readVersion(root, "blob")
	require.ErrorIs(t, err, ErrFormat)
	require.NotContains(t, err.Error(), "damaged")
}

func TestOpen_RefusesAFolderOfANewerFormatAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, unfinished), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, unfinished, "draft"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, formatFile), []byte("2\nv2.5\n"), 0o600))
	_, err := Open(Options{Dir: dir})
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, `version "v2.5" wrote it, so use that version or a newer one`)
	require.FileExists(t, filepath.Join(dir, unfinished, "draft"))
}
