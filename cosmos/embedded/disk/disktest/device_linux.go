package disktest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// Devices that can replace the file of a store.
const (
	Full       = "/dev/full" // on this device, every write fails
	Unsyncable = "/dev/null" // on this device, every write succeeds, but fsync fails
)

// A Device is a [disk.FileSystem] whose file can be replaced. Memory that was mapped before stays valid, so reads
// succeed, as on a disk that only fails to write.
type Device struct {
	disk.System
	opened *os.File // the last file that OpenFile opened
}

// OpenFile implements [disk.FileSystem].
func (d *Device) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	file, err := d.System.OpenFile(name, flag, mode)
	d.opened = file
	return file, err
}

// Become replaces the last opened file with a device or another file, but keeps the descriptor. This releases the lock
// of the first file.
func (d *Device) Become(t testing.TB, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(file.Fd()), int(d.opened.Fd()), syscall.O_CLOEXEC))
	require.NoError(t, file.Close())
}
