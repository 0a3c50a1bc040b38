package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/record"
	"github.com/messagehub/messagehub/bench/report"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// A benchCommand is a run of the bench on the command line.
type benchCommand struct {
	p       *process
	options bench.Options
	list    bool
	json    string // files and a folder; "": not written
	results string
	plots   string
}

func (p *process) benchCommand() *cobra.Command {
	c := &benchCommand{p: p}
	cmd := &cobra.Command{
		Use:   "bench [SCENARIO...]",
		Short: "Measure the hub against its targets, other layouts and the limit",
		Long: "Measure the hub: how long its operations take, what they cost in request units, how that compares with\n" +
			"the layouts it replaces and with the least that its protocol needs, and whether the targets are met.\n\n" +
			"The account is the embedded engine with the physics of the service on, so that nothing is needed and\n" +
			"nothing is paid for. With --cosmos-endpoint it is a real one: databases are made there, measured, which\n" +
			"costs what it costs, and removed. Its key, if it has one, is in " + cosmosKeyVariable + "; an endpoint in\n" +
			"the environment alone is not used. What is still modelled then says so.\n\n" +
			"Figures are printed as scenarios end; Ctrl-C stops with what is known so far, and writes no file. A\n" +
			"scenario that fails does not stop the others.\n\n" +
			"The exit status is 0 if all targets are met, 1 if one is missed or a scenario failed, and 2 for a wrong\n" +
			"command line.",
		Example: "  messagehub bench --list\n" +
			"  messagehub bench --quick worst-peek dequeue\n" +
			"  messagehub bench --json figures.json --results RESULTS.md",
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.list, "list", false, "list the scenarios, and measure nothing")
	flags.BoolVar(&c.options.Quick, "quick", false, "smaller and shorter: a few minutes in all")
	flags.Uint64Var(&c.options.Seed, "seed", 1, "the same `N` makes the same load and the same weather")
	flags.StringVar(&c.json, "json", "", "write every figure to `FILE`, as JSON")
	flags.StringVar(&c.results, "results", "", "write a page with tables, plots and prices to `FILE`, in Markdown")
	flags.StringVar(&c.plots, "plots", "", "write the plots to folder `DIR`, as SVG; with --results: plots beside that file")
	config.AddFlags(flags, "cosmos.endpoint")
	cmd.RunE = p.do(func(ctx context.Context, names []string) error {
		find := bench.Find
		if p.scenarios != nil {
			find = p.scenarios
		}
		scenarios, err := find(names...)
		if err != nil {
			return p.usage("%w", err)
		}
		if c.list {
			return c.print(scenarios)
		}
		if err := c.aim(flags); err != nil {
			return err
		}
		return c.run(ctx, scenarios)
	})
	return cmd
}

// cosmosKeyVariable has the key of a real account.
const cosmosKeyVariable = "MESSAGEHUB_COSMOS_KEY"

// aim takes the account from the command line. One that is only in the environment,
// for a hub, is not measured by accident.
func (c *benchCommand) aim(flags *pflag.FlagSet) error {
	if !flags.Changed("cosmos-endpoint") {
		return nil
	}
	environ := slices.DeleteFunc(slices.Clone(c.p.environ), func(entry string) bool {
		return !strings.HasPrefix(entry, cosmosKeyVariable+"=")
	})
	cfg, err := config.Load(config.Inputs{Environ: environ, Flags: flags})
	if err != nil {
		return c.p.usage("%w", err)
	}
	c.options.Endpoint, c.options.Key = cfg.Cosmos.Endpoint, cfg.Cosmos.Key.Reveal()
	if c.options.Key == "" {
		c.options.Credential, err = node.Identity()
	}
	return err
}

func (c *benchCommand) print(scenarios []bench.Scenario) error {
	table := tabwriter.NewWriter(c.p.out, 0, 0, 2, ' ', 0)
	for _, s := range scenarios {
		fmt.Fprintf(table, "%s\t%s\n", s.Name, s.About)
	}
	return table.Flush()
}

// run carries out scenarios, and shows and writes what they found.
func (c *benchCommand) run(ctx context.Context, scenarios []bench.Scenario) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	r := &report.Report{Facts: c.facts(ctx)}
	fmt.Fprintf(c.p.err, "measuring on %s\n", r.Where)
	progress := newBenchProgress(c.p.err, len(scenarios))
	for i, s := range scenarios {
		section := &report.Section{Scenario: s.Name, About: s.About}
		r.Sections = append(r.Sections, section)
		o := c.options
		o.Progress = progress.begin(s.Name)
		o.Curve = func(curve figure.Curve) { section.Curves = append(section.Curves, curve) }
		section.Err = s.Run(ctx, o, func(f figure.Figure) { section.Figures = append(section.Figures, f) })
		progress.end()
		stopped := ctx.Err() != nil && (section.Err != nil || i+1 < len(scenarios))
		if stopped && section.Err != nil {
			section.Err = errors.New("stopped")
		}
		if err := r.WriteTable(c.p.out, section); err != nil {
			return err
		}
		if stopped {
			return errors.New("stopped before the end: what is above is all that is known, and no file was written")
		}
	}
	r.Took = time.Since(r.Began)
	if err := c.write(r); err != nil {
		return err
	}
	fmt.Fprintf(c.p.out, "%s\n\n%s\n", r.Origin(), r.Verdict())
	return outcome(r)
}

// facts are what a report says of a run that begins now.
func (c *benchCommand) facts(ctx context.Context) report.Facts {
	words := []string{"messagehub"}
	for _, arg := range c.p.args[1:] {
		words = append(words, shellWord(arg))
	}
	commit := version
	if commit == "dev" { // nobody has stamped it: it is run from its tree
		commit = record.Commit(ctx)
	}
	return report.Facts{
		Command: strings.Join(words, " "), Commit: commit, Machine: record.Machine(), Go: runtime.Version(),
		Began: time.Now(), Seed: c.options.Seed, Quick: c.options.Quick,
		Where: c.options.Where(), Model: c.options.Endpoint == "",
	}
}

// write writes the files that were asked for.
func (c *benchCommand) write(r *report.Report) error {
	plots := c.plots
	if plots == "" && c.results != "" {
		plots = filepath.Join(filepath.Dir(c.results), "plots")
	}
	if plots != "" {
		if err := r.WritePlots(plots); err != nil {
			return fmt.Errorf("--plots: %w", err)
		}
	}
	if c.results != "" {
		if err := r.WriteResults(c.results, plots); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	if c.json != "" {
		if err := r.WriteJSON(c.json); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	return nil
}

// outcome is an error if a scenario failed or a target is missed.
func outcome(r *report.Report) error {
	var failed []error
	for _, s := range r.Sections {
		failed = append(failed, s.Err)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if len(r.Missed()) > 0 {
		return exitError(exitFailed)
	}
	return nil
}
