package node

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/level"
)

// levels lists the store levels that this version supports. A version that
// raises the format of a document kind adds a level, and writes the new format
// only when the store has this level. formats_test.go compares the formats of
// each level with the code, and deploy/handbook/upgrading.md lists them for
// operators.
var levels = level.Table{
	{Since: "the first version with levels", Changes: []string{"Every format that versions before levels write."}},
}

// openLevel opens the level of the store. It fails if this version does not
// support the level.
func openLevel(ctx context.Context, db *client.Database, mailboxes *cosmos.Repository, opts *Options, metrics prometheus.Registerer) (*level.Store, error) {
	store, err := level.Open(ctx, db, level.Options{
		Table: opts.levelTable(), Version: opts.Version, IsUsed: mailboxes.IsUsed, BeatEvery: opts.LevelInterval,
		Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: metrics,
	})
	if err != nil {
		return nil, fmt.Errorf("check the level of the store: %w", err)
	}
	return store, nil
}

// levelTable returns the store levels that the node supports.
func (o *Options) levelTable() level.Table {
	if o.Levels != nil {
		return o.Levels
	}
	return levels
}

// A levelWatch watches the level of the store while the node runs. It also
// registers the node, so that other nodes and the command upgrade know about
// it. The node of a data folder is not registered, because no other node can
// use the folder, and the folder's level can rise only while no node runs.
type levelWatch struct {
	member *level.Member // member is nil for a data folder
	status level.Status  // status at the start; used only for a data folder
}

// watchLevel registers the node as a user of the store, unless the store is a
// data folder.
func (n *Node) watchLevel(ctx context.Context, cfg *config.Config) (w *levelWatch, err error) {
	w = &levelWatch{}
	if cfg.Embedded() {
		w.status, err = n.store.level.Status(ctx)
		return w, err
	}
	host, _ := os.Hostname() // an error is ignored, because the name is only for operators' lists
	w.member, err = n.store.level.Join(ctx, host)
	return w, err
}

// run watches the level until ctx ends. It fails if this version does not
// support the level, because the node must no longer write.
func (w *levelWatch) run(ctx context.Context) error {
	if w.member == nil {
		<-ctx.Done()
		return nil
	}
	return w.member.Run(ctx)
}

// leaveStore removes the node's registration.
func (w *levelWatch) leaveStore(ctx context.Context) {
	if w != nil && w.member != nil {
		w.member.Leave(ctx)
	}
}

// currentStatus returns the latest known status of the level.
func (w *levelWatch) currentStatus() level.Status {
	if w.member == nil {
		return w.status
	}
	return w.member.Status()
}

// buildInfo returns the version and levels that /readyz reports.
func (n *Node) buildInfo() *api.Build {
	st := n.level.currentStatus()
	return &api.Build{Version: cmp.Or(n.opts.Version, "unknown"), API: api.ContractVersion, Level: st.Highest, StoreLevel: st.Level, AnnouncedLevel: st.Announced}
}
