package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) notifyCommand() *cobra.Command {
	var file string
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Call receivers for a while, without a hub",
		Long: "Call the receivers of subscriptions for a while, without a hub: with messages that are not delivered yet, and\n" +
			"with those that are published meanwhile. A scheduler starts the command every few minutes, as a function or a job.\n" +
			"Its settings are those of serve (from a file, the environment, or the flags here).\n\n" +
			"With an account on Azure, any number may run at the same time, even beside hubs: each takes its share of the receivers.\n" +
			"Only one process can use a data folder, so no hub may run on it; a hub calls receivers itself.\n\n" +
			"A call begins only if it will end within --for: with a push.timeout of 30s, no call begins in the last 70 seconds. SIGTERM and\n" +
			"Ctrl-C end the command early; calls under way are completed or repeated later.",
		Example: "  messagehub notify --for 5m --data /var/lib/messagehub\n" +
			"  MESSAGEHUB_COSMOS_ENDPOINT=https://example.documents.azure.com messagehub notify --for 4m30s",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "`FILE` with settings in YAML")
	cmd.Flags().DurationVar(&duration, "for", 5*time.Minute, "end after this `TIME`")
	config.AddFlags(cmd.Flags(), "data", "cosmos.endpoint", "cosmos.database", "cosmos.consistency", "log.level", "log.format")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		cfg, err := config.Load(config.Inputs{File: file, Environ: p.environ, Flags: cmd.Flags()})
		if err != nil {
			return err
		}
		if least := node.NotifyReserve(&cfg); duration <= least {
			return p.usage("--for: want more than %s, got %s: a call takes up to %s (push.timeout), and its outcome has to be stored", least, duration, cfg.Push.Timeout)
		}
		if cfg.InMemory {
			return errors.New("in-memory = true: such a hub stores nothing; it calls its receivers itself while it runs")
		}
		return p.notify(ctx, cfg, duration)
	})
	return cmd
}

func (p *process) notify(ctx context.Context, cfg config.Config, duration time.Duration) error {
	ctx, stop := terminal.UntilSignal(ctx)
	defer stop()
	report, err := node.Notify(ctx, cfg, node.Options{Logger: newLogger(cfg.Log.Format, cfg.Log.Level, p.err), Version: version, Revision: revision}, duration)
	if used, ok := errors.AsType[*node.InUseError](err); ok {
		return fmt.Errorf("data folder %s: a hub, or another notify, uses it; a hub calls receivers itself, so stop it first, or do without notify", used.Folder)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s, %d failed\n", terminal.CountOf(report.Calls, "call"), report.Failed)
	return err
}
