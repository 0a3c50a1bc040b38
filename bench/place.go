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

// inNewPlace calls measure with a new place, and removes the place afterwards. The documents
// of a modelled account are on disk: so the heap of this process is that of the code that is
// measured, and the collector works as it would for that code alone. From another account the
// databases of the layouts are removed.
func (r *run) inNewPlace(ctx context.Context, measure func(p place) error) error {
	return r.inNewPlaceWith(ctx, "", measure)
}

// inNewPlaceWith is inNewPlace with a consistency level of the modelled account.
func (r *run) inNewPlaceWith(ctx context.Context, consistency string, measure func(p place) error) (err error) {
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
