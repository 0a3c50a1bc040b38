package disktest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// These devices can replace the file of a store.
const (
	Full       = "/dev/full" // every write fails
	Unsyncable = "/dev/null" // every write succeeds, and fsync fails
)

// A Device is a [disk.FileSystem] that can fail. The memory that was mapped before the failure stays
// valid, so reads succeed, as on a disk that fails to write.
type Device struct {
	disk.System
	opened *os.File // the file that was opened last
}

// OpenFile implements [disk.FileSystem].
func (d *Device) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	file, err := d.System.OpenFile(name, flag, mode)
	d.opened = file
	return file, err
}

// Become replaces the file that was opened last with a device or another file, under the same
// descriptor. This releases the lock of the file.
func (d *Device) Become(t testing.TB, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(file.Fd()), int(d.opened.Fd()), syscall.O_CLOEXEC))
	require.NoError(t, file.Close())
}
