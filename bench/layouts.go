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

// A progressFunc reports the completed part of the measurement of one layout, and its
// next step.
type progressFunc func(done float64, format string, args ...any)

// eachLayout measures each layout of the run. An error names the layout.
func (r *scenarioRun) eachLayout(measure func(l layout.Layout, progress progressFunc) error) error {
	return r.eachLayoutWithin(0, 1, measure)
}

// eachLayoutWithin is eachLayout for a part of the scenario. from is the beginning of the part, as
// a fraction of the duration of the scenario; part is its length.
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

// runOnNewAccount calls do with a store of a layout on a new account, which it removes
// afterwards. The store uses line.
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
