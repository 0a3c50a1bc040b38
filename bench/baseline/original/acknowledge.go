package original

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Acknowledge implements [repository.Bundles]. Like the original, it reads the whole bundle
// three times: to check the caller, for the drawers, and to mark it.
func (r *Repository) Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	checked, err := r.queryOpenBundle(ctx, recipient, id)
	if err != nil {
		return repository.Acknowledged{}, err
	}
	b, err := checked.domain()
	if err != nil {
		return repository.Acknowledged{}, err
	}
	item, err := r.queryOpenBundle(ctx, recipient, id)
	if err != nil {
		return repository.Acknowledged{}, err
	}
	all, parallel := errgroup.WithContext(ctx)
	for _, a := range item.AffectedDrawers {
		all.Go(func() error { return r.advance(parallel, b.Cabinet, a) })
	}
	if err := all.Wait(); err != nil {
		return repository.Acknowledged{}, err
	}
	if item, err = r.queryOpenBundle(ctx, recipient, id); err != nil {
		return repository.Acknowledged{}, err
	}
	item.Dequeued = true
	return repository.Acknowledged{Bundle: b}, r.bundles.Replace(ctx, item.Recipient, item.ID, item, "")
}

// advance moves the position of a drawer past a bundle, and updates the catalog. If another caller
// has moved the drawer, it assumes that a concurrent Dequeue was first.
func (r *Repository) advance(ctx context.Context, key domain.CabinetKey, a affected) error {
	d := a.UpdatedDrawer
	d.ETag = ""
	err := r.cabinets.Replace(ctx, d.PartitionKey, d.ID, d, a.UpdatedDrawer.ETag)
	if err != nil && items.Status(err) != http.StatusPreconditionFailed {
		return err
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return r.pointBehind(ctx, key, a) })
	both.Go(func() error { return r.deleteEntries(ctx, key, a.InitialCatalogEntrySequenceNumber) })
	return both.Wait()
}

// pointBehind writes the catalog entry that points to the first event after a bundle. Either the
// Peek has read that event, or the event was saved after the Peek.
func (r *Repository) pointBehind(ctx context.Context, key domain.CabinetKey, a affected) error {
	switch d := a.UpdatedDrawer; {
	case a.UpdatedCatalogEntry != nil:
		return r.upsertEntry(ctx, *a.UpdatedCatalogEntry)
	case d.Position == r.options.DrawerCapacity:
		return nil
	default:
		next, found, err := items.First[eventItem](ctx, r.cabinets, d.ID, items.Query{
			Text:   "SELECT * FROM c ORDER BY c.sequenceNumber OFFSET @position LIMIT 1",
			Params: map[string]any{"@position": d.Position},
		})
		if err != nil || !found {
			return err
		}
		return r.upsertEntry(ctx, newEntry(key, next.SequenceNumber))
	}
}

// deleteEntries deletes the entries that pointed to the events of a bundle.
func (r *Repository) deleteEntries(ctx context.Context, key domain.CabinetKey, first domain.Sequence) error {
	partition := catalogKey(key.Recipient.String(), key.Origin.String())
	entries, err := items.All[catalogEntry](ctx, r.catalog, partition, items.Query{
		Text:   "SELECT * FROM c WHERE c.contentType = @contentType AND c.nextSequenceNumber = @first",
		Params: map[string]any{"@contentType": key.ContentType.String(), "@first": first},
	})
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, e := range entries {
		all.Go(func() error { return r.catalog.Delete(ctx, partition, e.ID) })
	}
	return all.Wait()
}
