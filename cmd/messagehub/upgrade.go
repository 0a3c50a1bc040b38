package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/cosmos/level"
)

func (p *process) upgradeCommand() *cobra.Command {
	var file string
	var checkOnly, back bool
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Raise the level of the store once all nodes have the new version",
		Long: "Show the nodes of a store, their versions and the level of the store, and raise the level to the highest\n" +
			"that this version knows. The level states which formats nodes may write. Nodes of a new version write\n" +
			"what the previous version can read, until the level is raised; until then the previous version can be\n" +
			"installed again.\n\n" +
			"The level rises only if all living nodes know the next one. A node that is dead, or was killed, counts as\n" +
			"living for 40 s. The command may be interrupted and repeated. With --back it cancels a level that is\n" +
			"announced and not active yet.\n\n" +
			"The settings are those of serve, from a file, the environment, or the flags here. For a data folder, stop\n" +
			"its hub first.\n\n" +
			"The exit status is 0 if the store has the highest level, 1 if the level was not raised or, with --check,\n" +
			"can be raised, and 2 for a wrong command line or setting.",
		Example: "  messagehub upgrade --check --config hub.yaml\n" +
			"  messagehub upgrade --config hub.yaml\n" +
			"  messagehub upgrade --data /var/lib/messagehub",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.BoolVar(&checkOnly, "check", false, "change nothing, only report")
	flags.BoolVar(&back, "back", false, "cancel a level that is announced and not active yet")
	flags.StringVar(&file, "config", "", "`FILE` with settings in YAML")
	config.AddFlags(flags, "data", "cosmos.endpoint", "cosmos.database", "cosmos.consistency")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if checkOnly && back {
			return p.usage("--back: with --check nothing is changed; remove one of the two")
		}
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: flags})
		if err != nil {
			return err
		}
		if cfg.InMemory {
			return errors.New("in-memory = true: such a hub stores nothing, so nothing has to be upgraded")
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return p.upgrade(ctx, cfg, checkOnly, back)
	})
	return cmd
}

// upgrade prints the level of the store that cfg names, and raises it unless
// checkOnly is true. If back is true, it cancels the announced level instead.
func (p *process) upgrade(ctx context.Context, cfg config.Config, checkOnly, back bool) (err error) {
	u, err := node.OpenLevelUpgrade(ctx, cfg, node.Options{
		Version: version, Levels: p.levels, Logger: slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	st, err := u.Status(ctx)
	if err != nil {
		return err
	}
	p.showLevel(&st, cfg.Embedded())
	if back {
		return p.cancelLevel(ctx, u, &st)
	}
	if st.Level == st.Highest && st.Step == "" {
		fmt.Fprintf(p.out, "Nothing to upgrade: the store has level %d, the highest that this version knows.\n", st.Level)
		return nil
	}
	for next := st.Level + 1; next <= st.Highest; next++ {
		fmt.Fprintf(p.out, "Level %d changes:\n", next)
		for _, line := range u.Changes(next) {
			fmt.Fprintf(p.out, "  %s\n", line)
		}
	}
	if checkOnly {
		return exitError(exitFailed)
	}
	return u.Run(ctx, operatorName(), func(text string) { fmt.Fprintf(p.out, "%s\n", text) })
}

// showLevel prints the level of the store, and the nodes that use the store.
func (p *process) showLevel(st *level.Status, isFolder bool) {
	fmt.Fprintf(p.out, "The store has level %d. This version, %s, knows levels up to %d.\n", st.Level, version, st.Highest)
	if st.Announced != 0 {
		fmt.Fprintf(p.out, "Level %d is announced, and not active yet.\n", st.Announced)
	}
	if st.Step != "" {
		fmt.Fprintf(p.out, "The step %q of the level has not ended.\n", st.Step)
	}
	if isFolder {
		return
	}
	if len(st.Nodes) == 0 {
		fmt.Fprintln(p.out, "No node uses the store. Nodes of versions without levels are not listed.")
		return
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tVERSION\tKNOWS LEVEL\tBEATS")
	for _, n := range st.Nodes {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", terminal.Printable(strings.TrimPrefix(n.Name(), "node ")), terminal.Printable(n.Version), n.Level, n.Beat)
	}
	_ = table.Flush() // if this write fails, the next one fails as well
}

// cancelLevel cancels the announced level.
func (p *process) cancelLevel(ctx context.Context, u *node.LevelUpgrade, st *level.Status) error {
	isDone, err := u.Back(ctx, operatorName())
	switch {
	case err != nil:
		return err
	case isDone:
		fmt.Fprintf(p.out, "Level %d is cancelled. Versions that know level %d may be installed again.\n", st.Level+1, st.Level)
		return nil
	case st.Level > 1:
		return fmt.Errorf("nothing to cancel: level %d is active, so documents may have its formats, and it cannot be lowered; versions that know it are needed", st.Level)
	}
	return errors.New("nothing to cancel: no level is announced")
}

// operatorName returns the names of the user and of the machine, for the
// history of the level.
func operatorName() string {
	user := cmp.Or(loginName(), "unknown")
	if host, err := os.Hostname(); err == nil {
		return user + "@" + host
	}
	return user
}
