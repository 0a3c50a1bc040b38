package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
)

// Options configure a run of scenarios.
type Options struct {
	// Endpoint and Key select an existing account. Without a Key, Credential is used. Without an
	// Endpoint, the embedded engine models an account.
	Endpoint   string
	Key        string
	Credential azcore.TokenCredential

	// Beside lists the layouts that are measured in addition to the layout of the hub.
	Beside []layout.Layout

	// Hub returns the path of the program messagehub, for scenarios that run a hub as a process.
	Hub func(ctx context.Context) (string, error)

	Quick bool   // smaller loads and shorter measurements: all scenarios together take a few minutes
	Seed  uint64 // seed of the simulated latencies and of the load

	// Progress is called with the progress of a scenario, as often as it changes, from one
	// goroutine at a time. Default: progress is not reported.
	Progress func(Progress)

	// Curve is called with each curve, from one goroutine at a time. Default: curves are dropped.
	Curve func(figure.Curve)
}

// Where describes the measured account, for a report.
func (o Options) Where() string { return o.accountOptions().Where() }

func (o Options) accountOptions() account.Options {
	return account.Options{Endpoint: o.Endpoint, Key: o.Key, Credential: o.Credential, Physics: account.DefaultPhysics(o.Seed)}
}

// Progress is the progress of a scenario.
type Progress struct {
	Scenario string
	Step     string  // current step, in a few words, such as "fill up to 1000 events"
	Done     float64 // completed part of the scenario, from 0 to 1
}

// A Scenario answers one question about the hub with measurements.
type Scenario struct {
	Name  string // one word, or several joined by hyphens
	About string // one line with the measured operations and the amount of data
	run   func(ctx context.Context, r *scenarioRun) error
}

// NewScenario returns a scenario that Scenarios does not list. Its Run calls do. Tests of code that
// runs scenarios use NewScenario to avoid real measurements.
func NewScenario(name, about string, do func(ctx context.Context, o Options, tell func(figure.Figure)) error) Scenario {
	return Scenario{Name: name, About: about, run: func(ctx context.Context, r *scenarioRun) error {
		return do(ctx, r.Options, r.tell)
	}}
}

// Scenarios returns all scenarios, in the order in which they are run.
func Scenarios() []Scenario { return slices.Clone(scenarios) }

// Find calls FindAmong with all scenarios.
func Find(names ...string) ([]Scenario, error) { return FindAmong(scenarios, names...) }

// FindAmong returns the scenarios in all that have these names, in the order of all. Without names
// it returns all scenarios. The error for an unknown name lists the known names.
func FindAmong(all []Scenario, names ...string) ([]Scenario, error) {
	if len(names) == 0 {
		return slices.Clone(all), nil
	}
	var found []Scenario
	unknown := slices.Clone(names)
	for _, s := range all {
		if slices.Contains(names, s.Name) {
			found = append(found, s)
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == s.Name })
		}
	}
	if len(unknown) > 0 {
		var known []string
		for _, s := range all {
			known = append(known, s.Name)
		}
		return nil, fmt.Errorf("no scenario %q: there are %s", unknown[0], strings.Join(known, ", "))
	}
	return found, nil
}

// Run executes a scenario and calls tell with each figure as soon as it is known.
// The figures before an error are valid.
func (s Scenario) Run(ctx context.Context, o Options, tell func(figure.Figure)) error {
	r := &scenarioRun{Options: o, scenario: s.Name, tell: tell}
	if err := s.run(ctx, r); err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return nil
}

// A scenarioRun is one execution of a scenario. Only one goroutine may use it.
type scenarioRun struct {
	Options
	scenario string
	tell     func(figure.Figure)
}

// reportFigure reports a figure. A nil target means that the figure has no target.
func (r *scenarioRun) reportFigure(layout, metric string, value float64, unit string, target *figure.Target) {
	r.tell(figure.Figure{
		Scenario: r.scenario, Layout: layout, Metric: metric, Value: value, Unit: unit,
		Target: target, OK: target.Met(value), Modelled: r.Endpoint == "",
	})
}

// reportCurve reports a line, or a row of bars, of a plot.
func (r *scenarioRun) reportCurve(plot figure.Plot, name, unit string, points ...figure.Point) {
	if r.Curve != nil {
		r.Curve(figure.Curve{Scenario: r.scenario, Plot: plot, Name: name, Unit: unit, Points: points})
	}
}

// reportProgress reports the completed part of the scenario, from 0 to 1, and its next step.
func (r *scenarioRun) reportProgress(done float64, format string, args ...any) {
	if r.Progress != nil {
		r.Progress(Progress{Scenario: r.scenario, Step: fmt.Sprintf(format, args...), Done: done})
	}
}

// pickSize returns quick for a quick run, and otherwise whole.
func pickSize[T any](r *scenarioRun, whole, quick T) T {
	if r.Quick {
		return quick
	}
	return whole
}
