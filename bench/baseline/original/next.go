package original

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// NextUnacknowledged implements [repository.DataAvailable].
func (r *Repository) NextUnacknowledged(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (repository.Next, error) {
	origins := r.originsOf(groups)
	open, found, err := r.findLongestOpen(ctx, recipient, origins)
	if err != nil {
		return repository.Next{}, err
	}
	if found {
		b, err := open.domain()
		if err != nil {
			return repository.Next{}, err
		}
		return repository.Next{Open: &b, Run: r.runOf(&b, open.AffectedDrawers), Waiting: int64(b.Count)}, nil
	}
	first, origin, err := r.firstEntry(ctx, recipient, origins)
	if err != nil {
		return repository.Next{}, err
	}
	visible, err := r.Watermark(ctx, recipient)
	if err != nil {
		return repository.Next{}, err
	}
	if first == nil || first.NextSequenceNumber > visible {
		return repository.Next{}, domain.ErrNoData
	}
	key, err := items.ParseCabinet(recipient.String(), origin, first.ContentType)
	if err != nil {
		return repository.Next{}, domain.Errorf(domain.Damaged, "entry %s of the catalog: %w", first.ID, err)
	}
	ranges, err := r.readDrawers(ctx, key, visible)
	if err != nil {
		return repository.Next{}, err
	}
	run := r.runFrom(key, ranges)
	if len(run.events) == 0 || run.events[0].Sequence != first.NextSequenceNumber {
		// The original assumed that this entry came from a failed Save, and deleted the entry.
		if err := r.catalog.Delete(ctx, first.PartitionKey, first.ID); err != nil {
			return repository.Next{}, err
		}
		return repository.Next{}, domain.ErrNoData
	}
	return repository.Next{Run: run, Waiting: int64(len(run.events))}, nil
}

// findLongestOpen returns the bundle of origins that has been open longest.
func (r *Repository) findLongestOpen(ctx context.Context, recipient domain.ActorID, origins []string) (bundleItem, bool, error) {
	query := items.Query{
		Text:   "SELECT TOP 1 * FROM c WHERE c.recipient = @recipient AND c.dequeued = false",
		Params: map[string]any{"@recipient": recipient.String()},
	}
	if len(origins) < len(r.groups.Origins()) {
		query.AddIn("c.origin", origins)
	}
	query.Text += " ORDER BY c._ts"
	return items.First[bundleItem](ctx, r.bundles, recipient.String(), query)
}

// firstEntry returns the catalog entry of all origins with the smallest number, or nil.
func (r *Repository) firstEntry(ctx context.Context, recipient domain.ActorID, origins []string) (*catalogEntry, string, error) {
	firsts := make([]*catalogEntry, len(origins))
	all, ctx := errgroup.WithContext(ctx)
	for i, origin := range origins {
		all.Go(func() error {
			e, found, err := items.First[catalogEntry](ctx, r.catalog, catalogKey(recipient.String(), origin), items.Query{
				Text: "SELECT TOP 1 * FROM c ORDER BY c.nextSequenceNumber",
			})
			if found {
				firsts[i] = &e
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, "", err
	}
	var first *catalogEntry
	of := ""
	for i, e := range firsts {
		if e != nil && (first == nil || e.NextSequenceNumber < first.NextSequenceNumber) {
			first, of = e, origins[i]
		}
	}
	return first, of, nil
}

// A drawerRange holds the waiting events of a drawer.
type drawerRange struct {
	drawerItem
	events []repository.StoredEvent
}

// readDrawers reads the visible, unacknowledged events in the first drawers of a cabinet that have
// such events. It reads the drawers concurrently.
func (r *Repository) readDrawers(ctx context.Context, key domain.CabinetKey, visible domain.Sequence) ([]drawerRange, error) {
	drawers, err := items.All[drawerItem](ctx, r.cabinets, cabinetKey(key), items.Query{
		Text:   fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.position < @capacity ORDER BY c.orderBy", drawersPerPeek),
		Params: map[string]any{"@capacity": r.options.DrawerCapacity},
	})
	if err != nil {
		return nil, err
	}
	ranges := make([]drawerRange, len(drawers))
	all, ctx := errgroup.WithContext(ctx)
	for i, d := range drawers {
		all.Go(func() error {
			events, err := r.readDrawer(ctx, d.ID, items.Query{
				Text:   fmt.Sprintf("SELECT * FROM c WHERE c.sequenceNumber <= @visible ORDER BY c.sequenceNumber OFFSET %d LIMIT 2147483647", d.Position),
				Params: map[string]any{"@visible": visible},
				Page:   eventsPerPage,
			})
			ranges[i] = drawerRange{d, events}
			return err
		})
	}
	return ranges, all.Wait()
}

func (r *Repository) readDrawer(ctx context.Context, drawer string, q items.Query) ([]repository.StoredEvent, error) {
	var events []repository.StoredEvent
	for item, err := range items.Each[eventItem](ctx, r.cabinets, drawer, q) {
		var e repository.StoredEvent
		if err == nil {
			e, err = item.stored()
		}
		if err != nil {
			return nil, fmt.Errorf("read drawer %s: %w", drawer, err)
		}
		events = append(events, e)
	}
	return events, nil
}
