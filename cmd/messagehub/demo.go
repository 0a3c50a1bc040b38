package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/demo"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) demoCommand() *cobra.Command {
	var d demo.Demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a day of a small energy market, and account for every event",
		Long: "Start a hub in a temporary folder, send it a day of a small energy market over HTTP,\n" +
			"drain it as the actors would, and compare what was received with what was sent. Some actors do not\n" +
			"poll but are called; the receiver of one of them is unavailable until its dead letter is replayed. Then a\n" +
			"producer broadcasts to five consumers of a channel, of which one is slow and one fails for a while. Finally the\n" +
			"content of a bundle is deleted, and the ledger of objects shows that its domain has made it again.\n\n" +
			"The exit status is 1 if an event was lost, in two bundles, out of order or changed, if a message of the channel\n" +
			"did not reach a consumer, or reached it twice, or if the content was not made again.",
		Args: cobra.NoArgs,
	}
	cmd.Flags().IntVar(&d.Events, "events", 20_000, "`N` events during the day")
	cmd.Flags().IntVar(&d.Backlog, "backlog", 60_000, "`N` additional events that wait for one actor")
	cmd.Flags().Uint64Var(&d.Seed, "seed", 1, "seed `N`; the same seed generates the same day")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if d.Events < 0 || d.Backlog < 0 || d.Events+d.Backlog > 10_000_000 {
			return p.usage("--events, --backlog: want at least 0, and together at most 10,000,000")
		}
		d.Out, d.Err = p.out, p.err
		d.Logger = slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redactLogError}))
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		err := d.Run(ctx)
		if err != nil && ctx.Err() != nil {
			return errors.New("stopped before the end, without a verdict")
		}
		return err
	})
	return cmd
}
