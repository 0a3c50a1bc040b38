package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A NoDataError means that a folder contains no data of a hub.
type NoDataError struct{ Folder string }

func (e *NoDataError) Error() string {
	return fmt.Sprintf("data folder %s: no hub has kept anything there; name its folder with --data", e.Folder)
}

// Check verifies the invariants of the stored data that cfg names, without
// running a hub. It writes repairs only if opts.Repair is set. It also writes
// the identity of the data folder and the level of a store, if an earlier
// version did not. It fails with a *InUseError if a process uses the data
// folder, and with a *NoDataError if the folder contains no data.
func Check(ctx context.Context, cfg config.Config, opts hub.CheckOptions, logger *slog.Logger) (report hub.CheckReport, err error) {
	if err := requireData(&cfg); err != nil {
		return report, err
	}
	cfg.BlobListen = "" // no listener for domains during the check
	o := &Options{Logger: logger}
	o.setConnections(&cfg)
	defer o.network.close()
	s, err := openStore(ctx, &cfg, o, prometheus.NewRegistry())
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.checkStore(ctx, opts)
}

// requireData fails with a *NoDataError if no hub has stored anything in the
// data folder that cfg names.
func requireData(cfg *config.Config) error {
	if !cfg.Embedded() {
		return nil
	}
	if backup.IsRestored(cfg.Data) {
		return nil
	}
	for _, name := range []string{filepath.Join(cosmosFolder, disk.FileName), datafolder.IdentityFile} {
		if _, err := os.Stat(filepath.Join(cfg.Data, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return &NoDataError{cfg.Data}
}

// checkStore implements the store's Checker. It checks the mailboxes and then,
// unless the check is limited to one actor, the objects in the object stores.
func (s *nodeStore) checkStore(ctx context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
	var mailboxes hub.CheckReport
	if !objectstore.IsCheckPosition(opts.Resume) {
		report, err := s.Check(ctx, cosmos.CheckOptions{
			Recipient: opts.Actor, Repair: opts.Repair, Resume: opts.Resume, Progress: opts.Progress,
		})
		if err != nil || opts.Actor != (domain.ActorID{}) {
			return report, err
		}
		mailboxes, opts.Resume = report, ""
	}
	objects := objectstore.CheckOptions{Resume: opts.Resume}
	if opts.Progress != nil {
		objects.Progress = func(report hub.CheckReport) { opts.Progress(mailboxes.Plus(&report)) }
	}
	report, err := objectstore.New(s.db, objectstore.Options{}).Check(ctx, objects)
	return mailboxes.Plus(&report), err
}
