//go:build linux || darwin || freebsd

package node

import (
	"errors"

	"golang.org/x/sys/unix"
)

// measureDisk measures the disk usage of the file system that contains folder.
func measureDisk(folder string) (diskUsage, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return diskUsage{}, err
	}
	return diskUsage{
		isKnown:    true,
		free:       uint64(max(fs.Bavail, 0)) * uint64(fs.Bsize), //nolint:gosec,unconvert // their types differ between systems
		noMoreFile: fs.Files > 0 && fs.Ffree == 0,
		isReadOnly: errors.Is(unix.Access(folder, unix.W_OK), unix.EROFS),
	}, nil
}
