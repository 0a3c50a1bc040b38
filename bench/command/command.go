// Package command is the command line of the bench: it runs scenarios, shows their
// progress and their figures, and writes the figures as JSON.
//
// It has two callers. The command messagehub has a sub-command bench, which measures the hub. The
// program bench/compare also measures other layouts and writes a page with plots; only that program
// links these layouts and the plot library.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/bench/record"
	"github.com/messagehub/messagehub/bench/report"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// KeyVariable is the environment variable with the key of a real account.
const KeyVariable = "MESSAGEHUB_COSMOS_KEY"

// ErrMissed is the error of a run that has missed a target. The output contains the
// missed target.
var ErrMissed = errors.New("a target was missed")

// A UsageError is an error of the command line: nothing was measured.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// NewUsageError returns a UsageError with a text.
func NewUsageError(text string) UsageError { return UsageError{errors.New(text)} }

// A Bench is a run of the bench on a command line.
type Bench struct {
	Program string   // name of the program, for the report: "messagehub"
	Args    []string // arguments of the program
	Environ []string
	Out     io.Writer // figures
	Err     io.Writer // progress
	Commit  string    // measured commit; "" means the commit of the tree around the working folder

	// Find returns the scenarios with these names. Default: bench.Find.
	Find func(names ...string) ([]bench.Scenario, error)

	// Beside lists layouts to compare with the layout of the hub.
	Beside []layout.Layout

	// Hub returns the path of the program messagehub, which scenarios run as a process.
	Hub func(ctx context.Context) (string, error)

	// Write writes additional files about a run that was not interrupted. Default: only the JSON
	// file is written.
	Write func(*report.Report) error

	options bench.Options
	list    bool
	broker  bool   // run the scenario broker instead of push
	json    string // path of the JSON file; "" means that no file is written
}

// AddFlags adds the flags that messagehub bench and bench/compare have in common.
func (b *Bench) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&b.list, "list", false, "list the scenarios, and measure nothing")
	flags.BoolVar(&b.broker, "broker", false, "with push: broadcast by the webhook broker instead of publishing events, as the scenario broker does")
	flags.BoolVar(&b.options.Quick, "quick", false, "use smaller and shorter scenarios: a few minutes in total")
	flags.Uint64Var(&b.options.Seed, "seed", 1, "the same `N` makes the same load and the same simulated latency and faults")
	flags.StringVar(&b.json, "json", "", "write every figure to `FILE`, as JSON")
	config.AddFlags(flags, "cosmos.endpoint")
}

// Run runs the scenarios with these names, or all. It returns a UsageError if the command line is
// invalid, and ErrMissed if every scenario was completed but a target was missed.
func (b *Bench) Run(ctx context.Context, flags *pflag.FlagSet, names []string) error {
	find := bench.Find
	if b.Find != nil {
		find = b.Find
	}
	if b.broker {
		at := slices.Index(names, "push")
		if at < 0 {
			return NewUsageError("--broker is for the scenario push: bench push --broker")
		}
		names = slices.Replace(slices.Clone(names), at, at+1, "broker")
	}
	scenarios, err := find(names...)
	if err != nil {
		return UsageError{err}
	}
	if b.list {
		return b.printScenarios(scenarios)
	}
	if err := b.chooseAccount(flags); err != nil {
		return err
	}
	return b.runScenarios(ctx, scenarios)
}

// chooseAccount reads the account from the command line. Environment variables alone do not select
// an account, so that a variable that is set for a hub does not make the bench measure a real
// account.
func (b *Bench) chooseAccount(flags *pflag.FlagSet) error {
	if !flags.Changed("cosmos-endpoint") {
		return nil
	}
	environ := slices.DeleteFunc(slices.Clone(b.Environ), func(entry string) bool {
		return !strings.HasPrefix(entry, KeyVariable+"=")
	})
	cfg, err := config.Load(config.Inputs{Environ: environ, Flags: flags})
	if err != nil {
		return UsageError{err}
	}
	b.options.Endpoint, b.options.Key = cfg.Cosmos.Endpoint, cfg.Cosmos.Key.Reveal()
	if b.options.Key == "" {
		b.options.Credential, err = node.Identity()
	}
	return err
}

func (b *Bench) printScenarios(scenarios []bench.Scenario) error {
	table := tabwriter.NewWriter(b.Out, 0, 0, 2, ' ', 0)
	for _, s := range scenarios {
		fmt.Fprintf(table, "%s\t%s\n", s.Name, s.About)
	}
	return table.Flush()
}

// runScenarios runs scenarios, prints their figures and writes the reports.
func (b *Bench) runScenarios(ctx context.Context, scenarios []bench.Scenario) error {
	ctx, stop := terminal.UntilSignal(ctx)
	defer stop()
	b.options.Beside, b.options.Hub = b.Beside, b.Hub
	r := &report.Report{Facts: b.readFacts(ctx)}
	fmt.Fprintf(b.Err, "measuring on %s\n", r.Where)
	progress := newProgress(b.Err, len(scenarios))
	for i, s := range scenarios {
		section := &report.Section{Scenario: s.Name, About: s.About}
		r.Sections = append(r.Sections, section)
		o := b.options
		o.Progress = progress.beginScenario(s.Name)
		o.Curve = func(curve figure.Curve) { section.Curves = append(section.Curves, curve) }
		section.Err = s.Run(ctx, o, func(f figure.Figure) { section.Figures = append(section.Figures, f) })
		progress.endScenario()
		stopped := ctx.Err() != nil && (section.Err != nil || i+1 < len(scenarios))
		if stopped && section.Err != nil {
			section.Err = errors.New("stopped")
		}
		if err := r.WriteTable(b.Out, section); err != nil {
			return err
		}
		if stopped {
			return errors.New("stopped before the end: what is above is all that is known, and no file was written")
		}
	}
	r.Took = time.Since(r.Began)
	if err := b.writeReports(r); err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "%s\n\n%s\n", r.Origin(), r.Verdict())
	return resultError(r)
}

// readFacts returns the time, machine and commit of a run that begins now.
func (b *Bench) readFacts(ctx context.Context) report.Facts {
	words := []string{b.Program}
	for _, arg := range b.Args {
		words = append(words, terminal.ShellWord(arg))
	}
	commit := b.Commit
	if commit == "" {
		commit = record.Commit(ctx)
	}
	return report.Facts{
		Command: strings.Join(words, " "), Commit: commit, Machine: record.Machine(), Go: runtime.Version(),
		Began: time.Now(), Seed: b.options.Seed, Quick: b.options.Quick,
		Where: b.options.Where(), Model: b.options.Endpoint == "",
	}
}

// writeReports writes the requested files.
func (b *Bench) writeReports(r *report.Report) error {
	if b.Write != nil {
		if err := b.Write(r); err != nil {
			return err
		}
	}
	if b.json != "" {
		if err := r.WriteJSON(b.json); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	return nil
}

// resultError returns an error if a scenario failed or a target is missed.
func resultError(r *report.Report) error {
	var failed []error
	for _, s := range r.Sections {
		failed = append(failed, s.Err)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if len(r.Missed()) > 0 {
		return ErrMissed
	}
	return nil
}
