package node

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// Names of subfolders of the data folder.
const (
	cosmosFolder   = "cosmos"
	busFolder      = "bus"
	contentFolder  = "content"
	exchangeFolder = "exchange"
)

// protectFolder removes other users' permissions from the subfolders of the
// data folder, because an earlier version may have created them with wider
// permissions. It rejects a subfolder that is a link, because another user
// could then choose where the node writes. The data folder itself may be a
// link. Its permissions are not changed, because it may contain other files;
// protectFolder only logs a warning.
func protectFolder(dir string, logger *slog.Logger) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return folderFault(dir, err)
	}
	defer func() { _ = root.Close() }() // nothing is lost if Close fails, because nothing was written through root
	warnOfOpenFolder(dir, root, logger)
	for _, name := range []string{cosmosFolder, busFolder, contentFolder, exchangeFolder} {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return folderFault(dir, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("data folder %s: %s is a link, which is not followed; mount what it leads to at its place, or make the data folder itself the link", dir, name)
		case !info.IsDir() || !config.IsOpenToOthers(info):
			continue
		}
		if err := root.Chmod(name, datafolder.PrivateFolder); err != nil {
			logger.Warn("other users may read or write stored data, and this user cannot change that; run chmod 700 on the folder as its owner",
				"folder", filepath.Join(dir, name), "mode", fmt.Sprintf("%04o", info.Mode().Perm()), "error", err)
		}
	}
	return nil
}

// warnOfOpenFolder logs a warning if other users can read or write the data
// folder.
func warnOfOpenFolder(dir string, root *os.Root, logger *slog.Logger) {
	if info, err := root.Stat("."); err == nil && config.IsOpenToOthers(info) {
		logger.Warn("other users may read or write the data folder; run chmod 700 on it", "folder", dir, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
	}
}
