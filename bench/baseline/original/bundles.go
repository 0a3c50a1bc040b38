package original

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Add implements [repository.Bundles].
func (r *Repository) Add(ctx context.Context, b domain.Bundle, of repository.Run) (domain.Bundle, error) {
	run, ok := of.(*cabinetRun)
	if !ok || run.r != r {
		return domain.Bundle{}, domain.Errorf(domain.Invalid, "add bundle: its run is of another store")
	}
	if err := items.Fits(&b, run.group, run.key, run.yielded); err != nil {
		return domain.Bundle{}, err
	}
	if b.Opened.IsZero() {
		b.Opened = r.options.Clock().UTC()
	}
	b.DocumentTypes = slices.Clone(b.DocumentTypes)
	if err := r.rejectSecondBundle(ctx, &b); err != nil {
		return domain.Bundle{}, err
	}
	if run.open != nil {
		return domain.Bundle{}, domain.Errorf(domain.Conflict, "add bundle: its run is of bundle %s, which was open", run.open.ID)
	}
	item, err := newBundle(&b, run)
	if err != nil {
		return domain.Bundle{}, err
	}
	err = r.bundles.Create(ctx, item.Recipient, item)
	if items.Status(err) == http.StatusConflict {
		return domain.Bundle{}, repository.ErrBundleIDInUse
	}
	return b, err
}

// rejectSecondBundle replaces the trigger of the original: it refuses a bundle if another bundle of
// its group is open. It runs before the create, not atomically with the create, so two concurrent
// Adds may both succeed.
func (r *Repository) rejectSecondBundle(ctx context.Context, b *domain.Bundle) error {
	query := items.Query{
		Text:   "SELECT c.id FROM c WHERE c.recipient = @recipient AND c.dequeued = false",
		Params: map[string]any{"@recipient": b.Cabinet.Recipient.String()},
	}
	query.AddIn("c.origin", r.originsOf([]domain.Group{b.Group}))
	other, found, err := items.First[struct{ ID string }](ctx, r.bundles, b.Cabinet.Recipient.String(), query)
	if err != nil || !found {
		return err
	}
	// The original first checked whether the id was in use.
	var used bundleItem
	found, err = r.bundles.Read(ctx, b.Cabinet.Recipient.String(), b.ID.String(), &used)
	switch {
	case err != nil:
		return err
	case found:
		return repository.ErrBundleIDInUse
	default:
		return domain.Errorf(domain.Conflict, "add bundle: bundle %s of group %s is open", other.ID, b.Group)
	}
}

func newBundle(b *domain.Bundle, run *cabinetRun) (*bundleItem, error) {
	port, err := json.Marshal(items.BundleOf(b))
	if err != nil {
		return nil, fmt.Errorf("add bundle: %w", err)
	}
	item := &bundleItem{
		ID: b.ID.String(), ProcessID: processID(b), Recipient: b.Cabinet.Recipient.String(),
		Origin: b.Cabinet.Origin.String(), ContentType: b.Cabinet.ContentType.String(),
		DocumentTypes: b.MessageType(), AffectedDrawers: run.take(b.Count), Port: string(port),
	}
	if b.Format == domain.JSON {
		item.ResponseFormat = 1
	}
	item.NotificationIDsBase64 = make([]byte, 0, b.Count*len(domain.EventID{}))
	for _, e := range run.events[:b.Count] {
		item.NotificationIDsBase64 = append(item.NotificationIDsBase64, e.ID[:]...)
	}
	return item, nil
}

// queryOpenBundle queries an open bundle. All queries for open bundles have this form.
func (r *Repository) queryOpenBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (*bundleItem, error) {
	item, found, err := items.First[bundleItem](ctx, r.bundles, recipient.String(), items.Query{
		Text:   "SELECT * FROM c WHERE c.id = @id AND c.recipient = @recipient AND c.dequeued = false",
		Params: map[string]any{"@id": id.String(), "@recipient": recipient.String()},
	})
	if err == nil && !found {
		err = domain.Errorf(domain.NotFound, "bundle %s is not open for this actor", id)
	}
	return &item, err
}

// Find implements [repository.Bundles].
func (r *Repository) Find(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (domain.Bundle, repository.Run, error) {
	item, err := r.queryOpenBundle(ctx, recipient, id)
	if err != nil {
		return domain.Bundle{}, nil, err
	}
	b, err := item.domain()
	if err != nil {
		return domain.Bundle{}, nil, err
	}
	return b, r.runOf(&b, item.AffectedDrawers), nil
}
