package node

import (
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// openIdentity opens the identity of the data folder. It lists the folder's
// stores, so that a lost store can be distinguished from one that was never
// created.
func openIdentity(cfg *config.Config, opts *Options) (*datafolder.Identity, error) {
	now := time.Now
	if opts.Clock != nil {
		now = opts.Clock
	}
	return datafolder.OpenIdentity(cfg.Data, storesOf(cfg), opts.newID(), now())
}

// storesOf returns the stores that a data folder may contain.
func storesOf(cfg *config.Config) []datafolder.Store {
	return []datafolder.Store{
		{Name: cosmosFolder, File: disk.FileName, Used: cfg.Embedded()},
		{Name: busFolder, File: disk.FileName, Used: cfg.EmbeddedBus()},
		{Name: contentFolder, Used: cfg.EmbeddedBlob()},
		{Name: exchangeFolder, Used: cfg.EmbeddedBlob()},
	}
}

// newID returns a random UUID.
func (o *Options) newID() string {
	if o.Random == nil {
		return uuid.NewString()
	}
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], o.Random())
	binary.BigEndian.PutUint64(id[8:], o.Random())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4
	return id.String()
}

// logFolder logs the path of the data folder and its stores.
func logFolder(folder *datafolder.Identity, cfg *config.Config, logger *slog.Logger) {
	if folder == nil {
		return
	}
	logger.Info("data folder", "folder", AbsolutePath(cfg.Data), "id", folder.ID, "created", folder.Created,
		"state", folderState(folder), "stores", strings.Join(folder.Stores, ","),
		"documents_bytes", fileSize(cfg.Data, cosmosFolder), "messages_bytes", fileSize(cfg.Data, busFolder))
}

// AbsolutePath returns the absolute form of path, or path itself if the working
// directory is unknown.
func AbsolutePath(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return absolute
}

// FolderState says how Open found the data folder: new, adopted from an earlier
// version, or in use since a date. It returns "" if the node uses no folder.
func (n *Node) FolderState() string {
	if n.opts.folder == nil {
		return ""
	}
	return folderState(n.opts.folder)
}

// folderState says how this start found the data folder.
func folderState(folder *datafolder.Identity) string {
	switch {
	case folder.IsNew():
		return "new"
	case folder.IsAdopted():
		return "adopted from an earlier version"
	default:
		return "in use since " + folder.Created.Format(time.DateOnly)
	}
}

// fileSize returns the size of a store's file, or 0 if the file does not exist.
func fileSize(folder, store string) (n int64) {
	if info, err := os.Stat(filepath.Join(folder, store, disk.FileName)); err == nil {
		n = info.Size()
	}
	return n
}
