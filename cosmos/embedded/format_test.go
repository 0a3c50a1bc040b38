package embedded_test

import (
	"encoding/binary"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

func TestAFileOfANewerFormat_IsRefusedAndNotWritten(t *testing.T) {
	for name, raise := range map[string]func(t *testing.T, dir string){
		"of the engine": func(t *testing.T, dir string) {
			store, err := disk.Open(dir)
			require.NoError(t, err)
			require.NoError(t, store.Update(t.Context(), func(tx disk.Tx) error {
				require.NotNil(t, tx.Get([]byte("mformat")))
				tx.Put([]byte("mformat"), binary.BigEndian.AppendUint64(nil, 1000))
				require.Equal(t, "v1", string(tx.Get([]byte("mformatv"))))
				tx.Put([]byte("mformatv"), []byte("v99"))
				return nil
			}))
			require.NoError(t, store.Close())
		},
		"of the tree of keys": func(t *testing.T, dir string) {
			path := filepath.Join(dir, disk.FileName)
			image, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, page := range []int{0, os.Getpagesize()} {
				meta := image[page+16:]
				binary.LittleEndian.PutUint32(meta[4:], 3)
				sum := fnv.New64a()
				_, _ = sum.Write(meta[:56])
				binary.LittleEndian.PutUint64(meta[56:], sum.Sum64())
			}
			require.NoError(t, os.WriteFile(path, image, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			engine, err := embedded.Open(embedded.Options{Dir: dir, Version: "v1"})
			require.NoError(t, err)
			require.NoError(t, engine.Close())
			raise(t, dir)
			before, err := os.ReadFile(filepath.Join(dir, disk.FileName))
			require.NoError(t, err)
			_, err = embedded.Open(embedded.Options{Dir: dir})
			require.ErrorIs(t, err, disk.ErrFormat)
			require.ErrorContains(t, err, filepath.Join(dir, disk.FileName))
			require.ErrorContains(t, err, "open it with that one, or use another folder")
			if name == "of the engine" {
				require.ErrorContains(t, err, `it has format 1000, and this version reads 3; version "v99" wrote it, so use that one or a newer one`)
			}
			after, err := os.ReadFile(filepath.Join(dir, disk.FileName))
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}
