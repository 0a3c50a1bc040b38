package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/bench/command"
)

func (p *process) benchCommand() *cobra.Command {
	b := &command.Bench{Program: "messagehub", Args: p.args[1:], Environ: p.environ, Out: p.out, Err: p.err, Find: p.scenarios, Hub: func(context.Context) (string, error) { return os.Executable() }}
	if version != "dev" { // a development build runs in its source tree
		b.Commit = version
	}
	cmd := &cobra.Command{
		Use:   "bench [SCENARIO...]",
		Short: "Measure the hub against its targets and the limit",
		Long: "Measure the hub: how long its operations take, what they cost in request units, how that compares with\n" +
			"the minimum that its protocol needs, and whether the targets are met.\n\n" +
			"The account is the embedded engine, which simulates costs, latency and throttling of Cosmos DB: nothing else\n" +
			"is needed. With --cosmos-endpoint it is a real account: the command creates databases there, measures, which\n" +
			"costs money, and deletes them. The key of the account, if it has one, is in " + command.KeyVariable + "; an endpoint in\n" +
			"the environment alone is not used. Figures that are modelled even then are marked.\n\n" +
			"Figures are printed as scenarios end; Ctrl-C prints what was measured so far, and writes no file. A\n" +
			"scenario that fails does not stop the others.\n\n" +
			"The source tree has a program with the same flags, go run ./bench/compare. It also measures the layouts of\n" +
			"the hub that this one replaces, and writes a page with tables, plots and prices.\n\n" +
			"The exit status is 0 if all targets are met, 1 if one is missed or a scenario failed, and 2 for a wrong\n" +
			"command line.",
		Example: "  messagehub bench --list\n" +
			"  messagehub bench --quick worst-peek dequeue\n" +
			"  messagehub bench --json figures.json",
	}
	b.AddFlags(cmd.Flags())
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return explainMovedFlag(explainFlag(cmd, err)) })
	cmd.RunE = p.do(func(ctx context.Context, names []string) error {
		err := b.Run(ctx, cmd.Flags(), names)
		if _, ok := errors.AsType[command.UsageError](err); ok {
			return p.usage("%w", err)
		}
		if errors.Is(err, command.ErrMissed) {
			return exitError(exitFailed)
		}
		return err
	})
	return cmd
}

// explainMovedFlag adds to the error about an unknown flag which program has
// the flag now, if the flag was moved out of bench.
func explainMovedFlag(err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if ok && (unknown.GetSpecifiedName() == "results" || unknown.GetSpecifiedName() == "plots") {
		return fmt.Errorf("%w: the page and the plots are written by another program, in the source tree: go run ./bench/compare --%s", err, unknown.GetSpecifiedName())
	}
	return err
}
