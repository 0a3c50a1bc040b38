package embedded_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A brokenDisk can put another file behind the descriptor of the store. What
// is mapped into memory stays: reading goes on, as on a disk that fails to
// write.
type brokenDisk struct {
	disk.System
	t      *testing.T
	opened []*os.File
}

func (d *brokenDisk) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag, mode)
	d.opened = append(d.opened, f)
	return f, err
}

// become puts a device, or the file itself, behind what was opened last.
func (d *brokenDisk) become(device string) {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	require.NoError(d.t, err)
	store := d.opened[len(d.opened)-1]
	require.NoError(d.t, syscall.Dup3(int(f.Fd()), int(store.Fd()), syscall.O_CLOEXEC))
	require.NoError(d.t, f.Close())
}

func TestADiskThatFailsPoisonsTheEngineAndLosesNothingThatWasAnswered(t *testing.T) {
	for name, tc := range map[string]struct{ device, says string }{
		"it is full":       {"/dev/full", "the disk is full"},
		"it does not sync": {"/dev/null", "invalid argument"}, // takes every byte, and fsync fails
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := &brokenDisk{t: t}
			engine, err := embedded.Open(embedded.Options{Dir: dir, FileSystem: files})
			require.NoError(t, err)
			c := container(t, engine)
			create(t, c, large("large", 1, "p"), doc("a", 1))
			_, err = c.DeleteItem(t.Context(), pk, "large", nil) // leaves pages to write to, so the file need not grow
			require.NoError(t, err)
			_, err = c.UpsertItem(t.Context(), pk, doc("a", 1), nil)
			require.NoError(t, err)
			want := contents(t, c)

			files.become(tc.device)
			_, err = c.CreateItem(t.Context(), pk, doc("b", 1), nil)
			require.ErrorContains(t, err, tc.says)
			require.Equal(t, 500, status(t, nil, err))
			require.Equal(t, want, contents(t, c), "reading goes on, without the write that failed")
			files.become(filepath.Join(dir, disk.FileName)) // the disk is well again
			_, err = c.CreateItem(t.Context(), pk, doc("d", 1), nil)
			require.ErrorContains(t, err, "takes no more writes", "it is not tried again")
			_ = engine.Close() // what it closes is not its file any more

			engine, err = embedded.Open(embedded.Options{Dir: copyOf(t, dir)})
			require.NoError(t, err)
			defer func() { require.NoError(t, engine.Close()) }()
			c, err = client(t, engine).NewContainer("db", "c")
			require.NoError(t, err)
			require.Equal(t, want, contents(t, c))
			create(t, c, doc("b", 1))
		})
	}
}

// copyOf copies a folder: the lock of the first engine went with its file.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	writeImage(t, other, readImage(t, filepath.Join(dir, disk.FileName)))
	return other
}
