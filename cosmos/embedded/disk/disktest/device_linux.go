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
	Full       = "/dev/full" // every write fails
	Unsyncable = "/dev/null" // every write succeeds, and fsync fails
)

// A Device is a [disk.FileSystem] that can fail. The mapped memory stays, so that reads
// succeed, as on a disk that fails to write.
type Device struct {
	disk.System
	opened *os.File // last
}

// OpenFile implements [disk.FileSystem].
func (d *Device) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	file, err := d.System.OpenFile(name, flag, mode)
	d.opened = file
	return file, err
}

// Become replaces the file that was opened last, behind its descriptor, by a device or another
// file. The lock of that file ends.
func (d *Device) Become(t testing.TB, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(file.Fd()), int(d.opened.Fd()), syscall.O_CLOEXEC))
	require.NoError(t, file.Close())
}
