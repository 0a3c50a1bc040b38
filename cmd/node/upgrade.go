package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/level"
)

// A LevelUpgrade reads and changes the level of a store. Nodes may use the
// store during the upgrade, unless it is a data folder.
type LevelUpgrade struct {
	level   *level.Store
	alone   bool // a data folder, which no node may use during the upgrade
	levels  level.Table
	closers *nodeStore
	network *network
}

// OpenLevelUpgrade opens the store that cfg names. It fails with an *InUseError
// if a process uses the data folder, and with a *NoDataError if the folder
// contains no data. The caller must close the result.
func OpenLevelUpgrade(ctx context.Context, cfg config.Config, opts Options) (u *LevelUpgrade, err error) {
	if err := requireData(&cfg); err != nil {
		return nil, err
	}
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.setConnections(&cfg)
	u = &LevelUpgrade{alone: cfg.Embedded(), levels: opts.levelTable(), closers: &nodeStore{}, network: opts.network}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.Close())
		}
	}()
	if u.alone {
		if err := u.closers.claimFolder(&cfg, &opts); err != nil {
			return u, err
		}
	}
	connection, err := u.closers.connection(&cfg, &opts) //nolint:contextcheck // opening a folder cannot be cancelled
	if err != nil {
		return u, err
	}
	db, err := client.Connect(connection)
	if err != nil {
		return u, err
	}
	u.closers.closers = append(u.closers.closers, func() error { db.Close(); return nil })
	mailboxes := cosmos.New(db, nil, cosmos.Options{})
	u.level, err = openLevel(ctx, db, mailboxes, &opts, prometheus.NewRegistry())
	return u, err
}

// Close closes the store.
func (u *LevelUpgrade) Close() error {
	err := u.closers.close()
	u.network.close()
	return err
}

// Status returns the level of the store, and the nodes that use the store; a
// data folder has no nodes.
func (u *LevelUpgrade) Status(ctx context.Context) (level.Status, error) { return u.level.Status(ctx) }

// Changes describes the changes that a level makes.
func (u *LevelUpgrade) Changes(number int) []string { return u.levels.Level(number).Changes }

// Run raises the level; see [level.Upgrade].
func (u *LevelUpgrade) Run(ctx context.Context, by string, report func(string)) error {
	return u.upgrade(by, report).Run(ctx)
}

// Back cancels an upgrade that has not become active. isDone is false if no
// upgrade waits.
func (u *LevelUpgrade) Back(ctx context.Context, by string) (isDone bool, err error) {
	return u.upgrade(by, nil).TakeBack(ctx)
}

func (u *LevelUpgrade) upgrade(by string, report func(string)) *level.Upgrade {
	return &level.Upgrade{Store: u.level, By: by, Alone: u.alone, Report: report}
}
