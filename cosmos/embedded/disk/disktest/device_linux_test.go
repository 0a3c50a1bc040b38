package disktest_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/disk/disktest"
)

func putKey(t *testing.T, store disk.Store, key string) error {
	t.Helper()
	return store.Update(t.Context(), func(tx disk.Tx) error {
		tx.Put([]byte(key), []byte("value"))
		return nil
	})
}

func TestDevice_FailsToWriteAndStillReads(t *testing.T) {
	for device, want := range map[string]error{disktest.Full: disk.ErrFull, disktest.Unsyncable: disk.ErrBroken} {
		dir, files := t.TempDir(), &disktest.Device{}
		store, err := disk.OpenOn(dir, files)
		require.NoError(t, err)
		require.NoError(t, putKey(t, store, "a"))
		files.Become(t, device)
		err = putKey(t, store, "b")
		require.ErrorIs(t, err, want, device)
		require.ErrorIs(t, err, disk.ErrBroken, device)
		require.NoError(t, store.View(func(r disk.Reader) error {
			require.Equal(t, "value", string(r.Get([]byte("a"))))
			require.Nil(t, r.Get([]byte("b")))
			return nil
		}))
		files.Become(t, filepath.Join(dir, disk.FileName))
		require.ErrorIs(t, putKey(t, store, "c"), disk.ErrBroken, "a disk that works again changes nothing")
		_ = store.Close() // Close may fail, because the file was replaced
	}
}
