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
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/domain/hub"
)

// A NoDataError says that there is nothing to check.
type NoDataError struct{ Folder string }

func (e *NoDataError) Error() string {
	return fmt.Sprintf("data folder %s: no hub has kept anything there; name its folder with --data", e.Folder)
}

// Check holds what cfg names to the invariants, without a hub: nothing is served,
// swept or written, but for what opts.Repair asks for. It fails with a *InUseError
// if a process has the data folder, and with a *NoDataError if nothing is there.
func Check(ctx context.Context, cfg config.Config, opts hub.CheckOptions, logger *slog.Logger) (report hub.CheckReport, err error) {
	if cfg.Embedded() {
		if _, err := os.Stat(filepath.Join(cfg.Data, cosmosFolder, disk.FileName)); errors.Is(err, fs.ErrNotExist) {
			return report, &NoDataError{cfg.Data}
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
	c := cosmos.CheckOptions{Recipient: opts.Actor, Repair: opts.Repair, Resume: opts.Resume}
	if opts.Progress != nil {
		c.Progress = func(r cosmos.Report) { opts.Progress(reported(&r)) }
	}
	report, err := s.Check(ctx, c)
	return reported(&report), err
}

func reported(r *cosmos.Report) hub.CheckReport {
	report := hub.CheckReport{
		Recipients: r.Recipients, Cabinets: r.Cabinets, Drawers: r.Drawers, Events: r.Events, Open: r.Open,
		Found: r.Found, Mended: r.Mended, Findings: make([]hub.Finding, len(r.Findings)), Resume: r.Resume,
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		report.Findings[i] = hub.Finding{
			Rule: f.Rule, Kind: f.Kind, Recipient: f.Recipient, Where: f.Where, Text: f.Text, Damage: f.Damage, Mended: f.Mended,
		}
	}
	return report
}
