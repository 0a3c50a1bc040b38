package node

import (
	"errors"
	"fmt"
	"os"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// lockName is the file whose lock shows that a process uses the data folder. The
// engine locks its own folder, too. This lock also protects the payloads, and a
// data folder whose documents are on Azure.
const lockName = "lock"

// lockFolder creates the data folder if it does not exist, and locks it. The
// lock is released when it is closed or the process dies.
func lockFolder(dir string) (*datafolder.HeldLock, error) {
	if err := datafolder.Make(dir); err != nil {
		return nil, folderFault(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, folderFault(dir, err)
	}
	defer func() { _ = root.Close() }() // nothing was written through root
	file, err := datafolder.Lock(root, lockName)
	if err != nil {
		return nil, folderFault(dir, err)
	}
	return file, nil
}

// An InUseError reports that another process uses a data folder.
type InUseError struct{ Folder string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("data folder %s: another process uses it; stop that one, or choose another folder with --data", e.Folder)
}

// folderFault adds the remedy to an error about a data folder that cannot be
// used.
func folderFault(dir string, err error) error {
	if errors.Is(err, datafolder.ErrLocked) {
		return &InUseError{dir}
	}
	return config.FolderError(dir, err)
}
