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

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/domain/hub"
)

// A NoDataError says that there is nothing to check.
type NoDataError struct{ Folder string }

func (e *NoDataError) Error() string {
	return fmt.Sprintf("data folder %s: no hub has kept anything there; name its folder with --data", e.Folder)
}

// Check holds what cfg names to the invariants, without a hub: nothing is served,
// swept or written, apart from the repairs of opts.Repair and the identity of a folder that
// an earlier version has made. It fails with a *InUseError
// if a process has the data folder, and with a *NoDataError if nothing is there.
func Check(ctx context.Context, cfg config.Config, opts hub.CheckOptions, logger *slog.Logger) (report hub.CheckReport, err error) {
	if cfg.Embedded() {
		if _, err := os.Stat(filepath.Join(cfg.Data, cosmosFolder, disk.FileName)); errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Stat(filepath.Join(cfg.Data, datafolder.IdentityFile)); errors.Is(err, fs.ErrNotExist) {
				return report, &NoDataError{cfg.Data}
			}
		}
	}
	cfg.BlobListen = "" // nobody exchanges anything meanwhile
	o := &Options{Logger: logger}
	o.connect()
	defer o.network.close()
	s, err := openStore(ctx, &cfg, o, prometheus.NewRegistry())
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.check(ctx, opts)
}

// check is the Checker of the store.
func (s *store) check(ctx context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
	return s.Check(ctx, cosmos.CheckOptions{
		Recipient: opts.Actor, Repair: opts.Repair, Resume: opts.Resume, Progress: opts.Progress,
	})
}
