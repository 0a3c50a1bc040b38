package original

import (
	"context"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A cabinetRun is a range of events of a cabinet. Only one goroutine may use it.
type cabinetRun struct {
	r     *Repository
	key   domain.CabinetKey
	group domain.Group

	// A run of a new bundle has these fields.
	ranges  []drawerRange
	events  []repository.StoredEvent // events of all ranges, which are already read
	yielded []domain.Sequence

	// A run of an open bundle has these fields.
	open *domain.Bundle
	from []affected
}

// runFrom returns a run of the events that were read. It ends before the first drawer
// without events.
func (r *Repository) runFrom(key domain.CabinetKey, ranges []drawerRange) *cabinetRun {
	group, _ := r.groups.GroupOf(key.Origin) // firstEntry returns only known origins
	run := &cabinetRun{r: r, key: key, group: group}
	for _, s := range ranges {
		if len(s.events) == 0 {
			break
		}
		run.ranges = append(run.ranges, s)
		run.events = append(run.events, s.events...)
	}
	return run
}

// runOf returns the run of an open bundle.
func (r *Repository) runOf(b *domain.Bundle, from []affected) *cabinetRun {
	return &cabinetRun{r: r, key: b.Cabinet, group: b.Group, open: b, from: from}
}

// Group implements [repository.Run].
func (r *cabinetRun) Group() domain.Group { return r.group }

// Cabinet implements [repository.Run].
func (r *cabinetRun) Cabinet() domain.CabinetKey { return r.key }

// Folder implements [repository.Run]. This layout does not delete old events,
// so the folder is constant.
func (r *cabinetRun) Folder() string {
	return fmt.Sprintf("cabinets/%s/%s/%x", r.key.Recipient, r.key.Origin, r.key.ContentType.String())
}

// Saves implements [repository.Run]. The store has no traces.
func (r *cabinetRun) Saves(int, int) []domain.TraceContext { return nil }

// BacklogAfter implements [repository.Run]. It counts only the events that were
// read.
func (r *cabinetRun) BacklogAfter(n int) domain.Backlog {
	if n >= len(r.events) {
		return domain.Backlog{}
	}
	return domain.Backlog{Events: int64(len(r.events) - n), Oldest: r.events[n].Saved}
}

// Events implements [repository.Run].
func (r *cabinetRun) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	return func(yield func(repository.StoredEvent, error) bool) {
		events := r.events
		err := ctx.Err()
		if err == nil && r.open != nil {
			events, err = r.readAgain(ctx)
		}
		if err != nil {
			yield(repository.StoredEvent{}, fmt.Errorf("read events: %w", err))
			return
		}
		for i, e := range events {
			if i == len(r.yielded) {
				r.yielded = append(r.yielded, e.Sequence)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// readAgain reads the events of an open bundle, from all its drawers
// concurrently.
func (r *cabinetRun) readAgain(ctx context.Context) ([]repository.StoredEvent, error) {
	read := make([][]repository.StoredEvent, len(r.from))
	all, ctx := errgroup.WithContext(ctx)
	for i, a := range r.from {
		all.Go(func() (err error) {
			read[i], err = r.r.readDrawer(ctx, a.UpdatedDrawer.ID, items.Query{
				Text:   "SELECT * FROM c WHERE c.sequenceNumber >= @first AND c.sequenceNumber <= @last ORDER BY c.sequenceNumber",
				Params: map[string]any{"@first": a.InitialCatalogEntrySequenceNumber, "@last": r.open.Last},
				Page:   eventsPerPage,
			})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	var events []repository.StoredEvent
	for _, some := range read {
		events = append(events, some...)
	}
	return events, nil
}

// take returns the drawers of the first n events of r, as they are after an Acknowledge of these
// events.
func (r *cabinetRun) take(n int) []affected {
	var drawers []affected
	for _, s := range r.ranges {
		of := min(n, len(s.events))
		if of == 0 {
			break
		}
		n -= of
		a := affected{UpdatedDrawer: s.drawerItem, InitialCatalogEntrySequenceNumber: s.events[0].Sequence}
		a.UpdatedDrawer.Position += of
		if of < len(s.events) {
			next := newEntry(r.key, s.events[of].Sequence)
			a.UpdatedCatalogEntry = &next
		}
		drawers = append(drawers, a)
	}
	return drawers
}
