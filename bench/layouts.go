package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/layout"
)

// measuredLayouts returns the layouts that r measures: the layout of the hub first, then the
// layouts in Beside.
func (r *scenarioRun) measuredLayouts() []layout.Layout {
	return append([]layout.Layout{hub}, r.Beside...)
}

// A progressFunc reports progress of the measurement of a layout: the completed part, from 0 to 1,
// and the next step.
type progressFunc func(done float64, format string, args ...any)

// eachLayout measures each layout of the run. An error names the layout.
func (r *scenarioRun) eachLayout(measure func(l layout.Layout, progress progressFunc) error) error {
	return r.eachLayoutWithin(0, 1, measure)
}

// eachLayoutWithin measures each layout in a part of the scenario, which starts at from and has the
// length part. Both are fractions of the scenario's duration.
func (r *scenarioRun) eachLayoutWithin(from, part float64, measure func(l layout.Layout, progress progressFunc) error) error {
	part /= float64(len(r.measuredLayouts()))
	for i, l := range r.measuredLayouts() {
		progress := func(done float64, format string, args ...any) {
			r.reportProgress(from+part*(float64(i)+done), format, args...)
		}
		if err := measure(l, progress); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return nil
}

// runOnNewAccount opens a new account and a store of layout l, which sends its requests over line.
// It calls do, and then removes the account.
func runOnNewAccount(ctx context.Context, o account.Options, l layout.Layout, do func(a *account.Account, line *account.Line, s *layout.Store) error) (err error) {
	a, err := account.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := l.Provision(ctx, a, perContainer); err != nil {
		return err
	}
	line := a.Line()
	s, err := l.Open(ctx, a, line)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(a, line, s)
}
