package disktest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// The devices that a disk can become.
const (
	Full       = "/dev/full" // has no room
	Unsyncable = "/dev/null" // takes every byte, and fsync fails
)

// A Device is a [disk.FileSystem] that can fail. What is mapped into memory stays, so
// reading goes on, as on a disk that fails to write.
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

// Become puts a device, or a file, behind the descriptor of the file that was opened
// last. The lock of that file ends.
func (d *Device) Become(t testing.TB, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(file.Fd()), int(d.opened.Fd()), syscall.O_CLOEXEC))
	require.NoError(t, file.Close())
}
