// Command compare compares the hub with the layouts that it replaces, and writes a page with
// tables, plots and prices. `make bench` writes bench/RESULTS.md and bench/plots with it.
//
// It has the scenarios, flags and exit statuses of `messagehub bench`, and the additional scenario
// tokens. It is a separate program so that the command of operators does not contain the replaced
// layouts, plots and fonts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/bench/baseline"
	"github.com/messagehub/messagehub/bench/command"
	"github.com/messagehub/messagehub/bench/compare/internal/page"
	"github.com/messagehub/messagehub/bench/report"
	"github.com/messagehub/messagehub/cmd/node/config"
)

func main() {
	os.Exit(runCommand(context.Background(), &commandProcess{args: os.Args[1:], environ: os.Environ(), out: os.Stdout, err: os.Stderr}))
}

// A commandProcess is the environment of a run of the program.
type commandProcess struct {
	args     []string
	environ  []string
	out, err io.Writer

	// scenarios returns the scenarios with these names. Default: findScenarios.
	scenarios func(names ...string) ([]bench.Scenario, error)
}

// The exit statuses besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
)

// runCommand runs the command line and returns the exit status.
func runCommand(ctx context.Context, p *commandProcess) int {
	hasBegun := false
	cmd := compareCommand(p, &hasBegun) //nolint:contextcheck // cobra passes the context to the command
	cmd.SetArgs(p.args)
	cmd.SetOut(p.out)
	cmd.SetErr(p.err)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, command.ErrMissed) {
		return exitFailed
	}
	text, _ := config.Redact(err.Error()) // an argument may be a connection string
	for line := range strings.Lines(text) {
		fmt.Fprintf(p.err, "compare: %s\n", strings.TrimSpace(line))
	}
	if _, isUsage := errors.AsType[command.UsageError](err); hasBegun && !isUsage {
		return exitFailed
	}
	fmt.Fprintln(p.err, "compare: see go run ./bench/compare --help")
	return exitUsage
}

func compareCommand(p *commandProcess, hasBegun *bool) *cobra.Command {
	var results, plots string
	var replace bool
	cmd := &cobra.Command{
		Use:   "compare [SCENARIO...]",
		Short: "Measure the hub beside the layouts that it replaces, and draw what was found",
		Long: "Measure the hub as messagehub bench does, and beside it two layouts that it replaces: original, drawers with\n" +
			"a document for each event, and single, one partition for each recipient. Write a page with tables, plots and\n" +
			"prices.",
		Example: "  go run ./bench/compare --list\n" +
			"  go run ./bench/compare --quick worst-peek\n" +
			"  go run ./bench/compare --results bench/RESULTS.md\n" +
			"  go run ./bench/compare --results bench/RESULTS.md --replace broker",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	find := p.scenarios
	if find == nil {
		find = findScenarios
	}
	b := &command.Bench{
		Program: "go run ./bench/compare", Args: p.args, Environ: p.environ, Out: p.out, Err: p.err,
		Find: find, Beside: baseline.Layouts(), Hub: buildHub,
		Write: func(r *report.Report) error { return writeResults(r, results, plots, replace) },
	}
	flags := cmd.Flags()
	b.AddFlags(flags)
	flags.StringVar(&results, "results", "", "write a page with tables, plots and prices to `FILE`, in Markdown")
	flags.StringVar(&plots, "plots", "", "write the plots to folder `DIR`, as SVG; with --results: plots beside that file")
	flags.BoolVar(&replace, "replace", false, "with --results: replace what the page has about these scenarios, and keep the rest of it")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		*hasBegun = true
		if replace && results == "" {
			return command.NewUsageError("--replace needs --results: the page to change")
		}
		return b.Run(cmd.Context(), flags, names)
	}
	return cmd
}

// findScenarios returns the scenarios with these names, among the scenarios of the command and the
// scenario tokens.
func findScenarios(names ...string) ([]bench.Scenario, error) {
	return bench.FindAmong(append(bench.Scenarios(), bench.Tokens()), names...)
}

// buildHub builds the program messagehub in the user's cache folder, and returns its path.
func buildHub(ctx context.Context) (string, error) {
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "messagehub-bench", "messagehub")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/messagehub/messagehub/cmd/messagehub") //nolint:gosec // the folder is that of the user
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the hub: %w: %s", err, said)
	}
	return path, nil
}

// writeResults writes the requested page and plots.
func writeResults(r *report.Report, results, plots string, replace bool) error {
	if plots == "" && results != "" {
		plots = filepath.Join(filepath.Dir(results), "plots")
	}
	if plots != "" {
		if err := page.WritePlots(r, plots); err != nil {
			return fmt.Errorf("--plots: %w", err)
		}
	}
	if results == "" {
		return nil
	}
	writePage := page.Write
	if replace {
		writePage = page.Replace
	}
	if err := writePage(r, results, plots); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	return nil
}
