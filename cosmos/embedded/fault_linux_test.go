package embedded_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/disk/disktest"
)

func TestFailingDisk_StopsWritesAndLosesNoConfirmedWrite(t *testing.T) {
	for name, tc := range map[string]struct{ device, says string }{
		"it is full":       {disktest.Full, "the disk is full"},
		"it does not sync": {disktest.Unsyncable, "invalid argument"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := &disktest.Device{}
			engine, err := embedded.Open(embedded.Options{Dir: dir, FileSystem: files})
			require.NoError(t, err)
			c := newContainer(t, engine)
			createDocs(t, c, largeDoc("large", 1, "p"), newDoc("a", 1))
			_, err = c.DeleteItem(t.Context(), pk, "large", nil) // the deletion frees pages, so the next commit need not grow the file
			require.NoError(t, err)
			_, err = c.UpsertItem(t.Context(), pk, newDoc("a", 1), nil)
			require.NoError(t, err)
			want := readAccount(t, c)

			files.Become(t, tc.device)
			_, err = c.CreateItem(t.Context(), pk, newDoc("b", 1), nil)
			require.ErrorContains(t, err, tc.says)
			require.Equal(t, 500, clientStatus(t, nil, err))
			require.Equal(t, want, readAccount(t, c), "reading goes on, without the write that failed")
			files.Become(t, filepath.Join(dir, disk.FileName)) // from here on, the disk works again
			_, err = c.CreateItem(t.Context(), pk, newDoc("d", 1), nil)
			require.ErrorContains(t, err, "accepts no writes", "it is not tried again")
			_ = engine.Close() // Close may fail, because the file was replaced

			engine, err = embedded.Open(embedded.Options{Dir: copyFolder(t, dir)})
			require.NoError(t, err)
			defer func() { require.NoError(t, engine.Close()) }()
			c, err = newClient(t, engine).NewContainer("db", "c")
			require.NoError(t, err)
			require.Equal(t, want, readAccount(t, c))
			createDocs(t, c, newDoc("b", 1))
		})
	}
}

// copyFolder copies a folder, so that the copy can be opened. The first engine has lost the lock of its file, because
// the file was replaced.
func copyFolder(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	writeImage(t, other, readImage(t, filepath.Join(dir, disk.FileName)))
	return other
}
