package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/messagehub/messagehub/bench/account"
)

// A place is where a scenario measures: an account of its own, and a folder for what
// else it needs.
type place struct {
	*account.Account
	folder string
}

// at has a scenario measure at a place, which is gone afterwards. The documents of a
// modelled account are on disk: so the heap of this process is that of whoever is
// measured, and its collector has no more to do than theirs would. From another account
// the databases of the layouts are removed.
func (r *run) at(ctx context.Context, measure func(p place) error) error {
	return r.atWith(ctx, "", measure)
}

// atWith is at with a consistency level of the modelled account.
func (r *run) atWith(ctx context.Context, consistency string, measure func(p place) error) (err error) {
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
			for _, l := range r.layouts() {
				err = errors.Join(err, a.Drop(context.WithoutCancel(ctx), l.Name))
			}
		}()
	}
	return measure(place{a, folder})
}
