package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/repository/content"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// AzureBackup says how to back up a hub that stores its data on Azure.
const AzureBackup = "use the backups of the services: continuous backup of Cosmos DB, and versions and soft delete of the blobs of the content container, both kept for the same time. " +
	"To restore, stop all hubs, restore the Cosmos account to a moment, then the blobs to the same moment or a later one, and run messagehub check --repair before a hub starts"

// backupRest is the length of a backup's pause after each piece of work, as a
// multiple of the work's duration. With 3, other requests get three quarters of
// a processor.
const backupRest = 3

// backupObstacle returns why a hub with these settings cannot be backed up, or
// "" if it can.
func backupObstacle(cfg *config.Config) string {
	var azure []string
	for _, service := range []struct {
		key    string
		isHere bool
	}{{"cosmos.endpoint", cfg.Embedded()}, {"servicebus", cfg.EmbeddedBus()}, {"blob.endpoint", cfg.EmbeddedBlob()}} {
		if !service.isHere {
			azure = append(azure, service.key)
		}
	}
	switch {
	case cfg.InMemory:
		return "in-memory = true: such a hub stores nothing, so there is nothing to back up"
	case len(azure) > 0:
		return "its data is on Azure (" + strings.Join(azure, ", ") + "): " + AzureBackup
	}
	return ""
}

// backUp writes an archive of the data folder while the node runs. It fails if
// another backup is running.
func (n *Node) backUp(ctx context.Context, w io.Writer) (err error) {
	contents, err := n.store.dir.Hold()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, contents.Release()) }()
	exchanged, err := n.store.exchange.own.Hold()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exchanged.Release()) }()

	var messages *disk.Snapshot
	documents, err := n.store.engine.TakeSnapshot(ctx, func() (err error) {
		messages, err = n.domains.bus.own.TakeSnapshot()
		return err
	})
	if messages != nil {
		defer func() { err = errors.Join(err, messages.Close()) }()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, documents.Close()) }()

	s := backup.Source{Version: n.opts.Version, Folder: n.opts.folder.ID, Began: n.currentTime(), Rest: backupRest}
	s.Files, err = folderFiles(n.data)
	if err != nil {
		return err
	}
	s.Files = append([]backup.File{
		{Name: busFolder + "/" + disk.FileName, Size: messages.Size(), From: messages},
		{Name: cosmosFolder + "/" + disk.FileName, Size: documents.Size(), From: documents},
	}, s.Files...)
	s.Trees = []backup.Tree{archiveTree(contentFolder, contents, n.store.dir.Temporary()), archiveTree(exchangeFolder, exchanged, n.store.exchange.own.Temporary())}
	return backup.Write(ctx, w, &s, nil)
}

func (n *Node) currentTime() time.Time {
	if n.opts.Clock != nil {
		return n.opts.Clock()
	}
	return time.Now()
}

// archiveTree returns a Tree of the held folder, without the files in skip.
func archiveTree(name string, hold *datafolder.Hold, skip []string) backup.Tree {
	return backup.Tree{Name: name, Each: func(visit func(string, *os.File, fs.FileInfo) error) error { return hold.Each(skip, visit) }}
}

// folderFiles returns the small files of a data folder that do not belong to a
// store.
func folderFiles(folder string) (files []backup.File, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing is lost if Close fails, because nothing was written through root
	for _, name := range []string{datafolder.IdentityFile, busFolder + "/" + datafolder.MarkFile, cosmosFolder + "/" + datafolder.MarkFile, pushKeyName} {
		text, err := root.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && name == pushKeyName {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, backup.File{Name: name, Size: int64(len(text)), From: strings.NewReader(string(text))})
	}
	return files, nil
}

// Backup writes an archive of a data folder that no hub uses. It fails with a
// *InUseError if a hub uses the folder, and with a *NoDataError if the folder
// contains no data. progress may be nil.
func Backup(ctx context.Context, cfg *config.Config, version string, w io.Writer, progress func(backup.Progress)) (err error) {
	if reason := backupObstacle(cfg); reason != "" {
		return errors.New(reason)
	}
	if err := requireData(cfg); err != nil {
		return err
	}
	lock, err := lockFolder(cfg.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := protectFolder(cfg.Data, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := backup.Finish(cfg.Data); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(cfg.Data, datafolder.IdentityFile)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data folder %s: an earlier version has made it; start this version once with it, and then back it up", cfg.Data)
	}
	identity, err := openIdentity(cfg, &Options{})
	if err != nil {
		return err
	}
	for _, store := range []string{busFolder, cosmosFolder, contentFolder, exchangeFolder} {
		if !slices.Contains(identity.Stores, store) {
			return fmt.Errorf("data folder %s: it has no %s, so its hub keeps data elsewhere; back up what it uses on Azure with the folder: %s", cfg.Data, store, AzureBackup)
		}
	}
	s := backup.Source{Version: version, Folder: identity.ID, Began: time.Now()}
	for _, store := range []string{busFolder, cosmosFolder} {
		opened, err := disk.OpenClaimed(filepath.Join(cfg.Data, store), disk.System{}, identity.Claim(store))
		if err != nil {
			return folderFault(cfg.Data, err)
		}
		defer func() { err = errors.Join(err, opened.Close()) }()
		snapshot, err := disk.ReadSnapshot(opened)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, snapshot.Close()) }()
		s.Files = append(s.Files, backup.File{Name: store + "/" + disk.FileName, Size: snapshot.Size(), From: snapshot})
	}
	files, err := folderFiles(cfg.Data)
	if err != nil {
		return folderFault(cfg.Data, err)
	}
	s.Files = append(s.Files, files...)
	dir, err := content.OpenClaimed(filepath.Join(cfg.Data, contentFolder), identity.Claim(contentFolder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	account, err := blobs.Open(blobs.Options{Dir: filepath.Join(cfg.Data, exchangeFolder), Claim: identity.Claim(exchangeFolder)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	contents, err := dir.Hold()
	if err != nil {
		return folderFault(cfg.Data, err)
	}
	defer func() { err = errors.Join(err, contents.Release()) }()
	exchanged, err := account.Hold()
	if err != nil {
		return folderFault(cfg.Data, err)
	}
	defer func() { err = errors.Join(err, exchanged.Release()) }()
	s.Trees = []backup.Tree{archiveTree(contentFolder, contents, dir.Temporary()), archiveTree(exchangeFolder, exchanged, account.Temporary())}
	return backup.Write(ctx, w, &s, progress)
}

// Restore restores an archive to a data folder that is missing or empty. It
// fails with a *InUseError if a process uses the folder. After an error the
// folder is empty, unless the error says otherwise. If frozen is not nil, all
// queues are frozen until an operator thaws them.
func Restore(ctx context.Context, folder string, from io.ReadSeeker, frozen *Frozen, progress func(backup.Progress)) (s backup.Summary, err error) {
	o := backup.RestoreOptions{Progress: progress}
	if frozen != nil {
		if o.Frozen, err = frozen.encodeJSON(); err != nil {
			return s, err
		}
	}
	lock, err := lockFolder(folder)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	s, err = backup.Restore(ctx, folder, from, o)
	switch _, isNotEmpty := errors.AsType[*backup.NotEmptyError](err); {
	case err == nil, isNotEmpty, errors.Is(err, backup.ErrDamaged), errors.Is(err, backup.ErrNewerFormat), ctx.Err() != nil:
		return s, err
	}
	return s, folderFault(folder, err)
}
