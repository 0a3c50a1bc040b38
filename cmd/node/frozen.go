package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/repository"
)

// frozenFormat is the newest format of the file "frozen" that this version can
// read.
const frozenFormat = 1

// A Frozen is the content of the file "frozen", which restore --freeze writes
// to a data folder. The first hub that uses the folder freezes every queue
// before it serves requests. While the file exists, each new queue is frozen
// from its first event, until an operator thaws it.
type Frozen struct {
	Format int       `json:"format"`
	Who    string    `json:"who"`
	Why    string    `json:"why"`
	Since  time.Time `json:"since"`
	Done   bool      `json:"done"` // Done means that the existing queues are frozen
}

// Check returns an error unless f contains an operator's name and a reason.
func (f *Frozen) Check() error { return f.order().Check() }

func (f *Frozen) order() repository.AdminAction {
	return repository.AdminAction{Who: f.Who, Why: f.Why}
}

func (f *Frozen) encodeJSON() ([]byte, error) {
	f.Format = frozenFormat
	text, err := json.MarshalIndent(f, "", "  ")
	return append(text, '\n'), err
}

// readFrozen reads the file "frozen" from the data folder. It returns nil if
// the file does not exist.
func readFrozen(cfg *config.Config) (*Frozen, error) {
	if cfg.InMemory || !cfg.Embedded() {
		return nil, nil //nolint:nilnil // such a hub is not restored from an archive
	}
	name := filepath.Join(cfg.Data, backup.FrozenFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is frozen
	}
	if err != nil {
		return nil, folderFault(cfg.Data, err)
	}
	f := &Frozen{}
	if err := json.Unmarshal(text, f); err != nil || f.Format < 1 || f.Check() != nil {
		return nil, fmt.Errorf("%s is damaged, so it is not known which queues must be frozen; remove it if none must be, or restore the folder again (%w)", name, err)
	}
	if f.Format > frozenFormat {
		return nil, fmt.Errorf("%s has format %d, and this version reads %d; use the version that wrote it", name, f.Format, frozenFormat)
	}
	return f, nil
}

// freeze freezes the existing queues and records this in the file. If they are
// already frozen according to the file, it only logs a warning.
func (s *nodeStore) freeze(ctx context.Context, cfg *config.Config, logger *slog.Logger) error {
	if s.frozen == nil {
		return nil
	}
	if !s.frozen.Done {
		n, err := s.FreezeAll(ctx, s.frozen.order())
		if err != nil {
			return fmt.Errorf("freeze the queues of the restored data folder %s: %w", cfg.Data, err)
		}
		s.frozen.Done = true
		text, err := s.frozen.encodeJSON()
		if err != nil {
			return err
		}
		if err := datafolder.ReplaceFile(cfg.Data, backup.FrozenFile, text); err != nil {
			return folderFault(cfg.Data, err)
		}
		logger.Info("the queues of the restored data folder are frozen", "queues", n)
	}
	logger.Warn("the data folder was restored with --freeze: queues hand out nothing until an operator thaws them; when all is decided, remove the file frozen and restart the hub", "folder", cfg.Data, "since", s.frozen.Since)
	return nil
}

// frozenWarnings returns the warning of /readyz that the data folder was
// restored with --freeze.
func (s *nodeStore) frozenWarnings() []api.FailedCheck {
	if s.frozen == nil {
		return nil
	}
	return []api.FailedCheck{{
		Name:   "frozen",
		Reason: "the data folder was restored with --freeze, and queues hand out nothing until an operator thaws them",
		Remedy: "thaw each queue with messagehub queue thaw ACTOR --why REASON; when all is decided, remove the file frozen from the data folder and restart the hub",
	}}
}
