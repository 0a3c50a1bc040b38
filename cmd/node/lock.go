package node

import (
	"errors"
	"fmt"
	"os"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// lockName is the file that a process locks while it uses the data folder. The
// engine also locks its own folder. This lock protects payloads as well, and
// data folders whose documents are on Azure.
const lockName = "lock"

// lockFolder creates the data folder if necessary, and locks it. The lock is
// released when it is closed or the process dies.
func lockFolder(dir string) (*datafolder.HeldLock, error) {
	if err := datafolder.Make(dir); err != nil {
		return nil, folderFault(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, folderFault(dir, err)
	}
	defer func() { _ = root.Close() }() // nothing is lost if Close fails, because nothing was written through root
	file, err := datafolder.Lock(root, lockName)
	if err != nil {
		return nil, folderFault(dir, err)
	}
	return file, nil
}

// An InUseError means that another process uses a data folder.
type InUseError struct{ Folder string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("data folder %s: another process uses it; stop that one, or choose another folder with --data", e.Folder)
}

// folderFault adds advice to the error about a data folder that cannot be used.
func folderFault(dir string, err error) error {
	if errors.Is(err, datafolder.ErrLocked) {
		return &InUseError{dir}
	}
	return config.FolderError(dir, err)
}
