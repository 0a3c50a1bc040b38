package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/messagehub/messagehub/bench/account"
)

// A testSite is the environment of one measurement: an account, and a folder for other data.
type testSite struct {
	*account.Account
	folder string
}

// runInNewSite calls measure with a new site, and removes the site afterwards. The documents of a
// modelled account are on disk, so that only the measured code affects the heap of this process and
// its garbage collection. On an existing account, it removes the databases of the layouts.
func (r *scenarioRun) runInNewSite(ctx context.Context, measure func(p testSite) error) error {
	return r.runInNewSiteWith(ctx, "", measure)
}

// runInNewSiteWith is runInNewSite with a consistency level of the modelled account.
func (r *scenarioRun) runInNewSiteWith(ctx context.Context, consistency string, measure func(p testSite) error) (err error) {
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	o := r.accountOptions()
	o.Dir, o.Consistency = filepath.Join(folder, "account"), consistency
	a, err := account.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if !a.Embedded() {
		defer func() {
			for _, l := range r.measuredLayouts() {
				err = errors.Join(err, a.Drop(context.WithoutCancel(ctx), l.Name))
			}
		}()
	}
	return measure(testSite{a, folder})
}
