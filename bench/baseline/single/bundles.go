package single

import (
	"context"
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// readBundle reads a bundle that the queue refers to.
func (r *Repository) readBundle(ctx context.Context, recipient domain.ActorID, name string) (domain.Bundle, error) {
	id, err := domain.ParseBundleID(name)
	if err != nil {
		return domain.Bundle{}, domain.Errorf(domain.Damaged, "queue of %s: %w", recipient, err)
	}
	var item bundleItem
	found, err := r.items.Read(ctx, recipient.String(), bundleID(id), &item)
	if err == nil && !found {
		err = domain.Errorf(domain.Damaged, "queue of %s: bundle %s is open, but it is not there", recipient, id)
	}
	if err != nil {
		return domain.Bundle{}, err
	}
	return item.Bundle.Bundle(id)
}

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
	q, err := run.queue, error(nil)
	for {
		if g := q.Groups[b.Group.String()]; g.Open != "" || g.Generation != run.generation {
			return domain.Bundle{}, r.refusalError(ctx, &b)
		}
		next := q.clone()
		next.Groups[b.Group.String()] = groupGate{
			Generation: run.generation + 1, Open: b.ID.String(), Opened: b.Opened, First: int64(b.First), Asked: run.requested,
		}
		var batch items.Batch
		batch.Create(bundleItem{bundleID(b.ID), items.BundleOf(&b)})
		next.putInto(&batch)
		done, err2 := r.items.Batch(ctx, q.Recipient, batch)
		switch {
		case err2 != nil:
			return domain.Bundle{}, err2
		case done.Done:
			return b, nil
		case done.Refused == 0 && done.Status == http.StatusConflict:
			return domain.Bundle{}, repository.ErrBundleIDInUse
		}
		// A concurrent Save, or a change of another group's bundle, has replaced the queue.
		if q, err = r.readQueue(ctx, b.Cabinet.Recipient); err != nil {
			return domain.Bundle{}, err
		}
	}
}

// refusalError returns the reason why a bundle cannot be opened: its id is in use, or its
// group has changed.
func (r *Repository) refusalError(ctx context.Context, b *domain.Bundle) error {
	var other bundleItem
	used, err := r.items.Read(ctx, b.Cabinet.Recipient.String(), bundleID(b.ID), &other)
	switch {
	case err != nil:
		return err
	case used:
		return repository.ErrBundleIDInUse
	default:
		return domain.Errorf(domain.Conflict, "add bundle: group %s has moved on", b.Group)
	}
}

// openBundle returns an open bundle, and the queue that refers to it.
func (r *Repository) openBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (*queueItem, domain.Bundle, error) {
	q, err := r.readQueue(ctx, recipient)
	if err != nil {
		return nil, domain.Bundle{}, err
	}
	if _, found := q.groupOf(id); !found {
		return nil, domain.Bundle{}, domain.Errorf(domain.NotFound, "bundle %s is not open for this actor", id)
	}
	b, err := r.readBundle(ctx, recipient, id.String())
	return q, b, err
}

// Find implements [repository.Bundles].
func (r *Repository) Find(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (domain.Bundle, repository.Run, error) {
	q, b, err := r.openBundle(ctx, recipient, id)
	if err != nil {
		return domain.Bundle{}, nil, err
	}
	var all []string
	for _, g := range r.groups.All() {
		all = append(all, g.String())
	}
	return b, r.runOf(q, &b, all), nil
}

// Acknowledge implements [repository.Bundles].
func (r *Repository) Acknowledge(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	for {
		q, b, err := r.openBundle(ctx, recipient, id)
		if err != nil {
			return repository.Acknowledged{}, err
		}
		if b.IsUnanswered() {
			return repository.Acknowledged{}, repository.ErrUnanswered
		}
		group := b.Group.String()
		requested := q.Groups[group].Asked
		q.Groups[group] = groupGate{Generation: q.Groups[group].Generation + 1}
		c := q.cabinetOf(b.Cabinet)
		c.Acknowledged += int64(b.Count)
		c.Position = b.Last
		etag := q.ETag
		q.ETag = ""
		err = r.items.Replace(ctx, q.Recipient, queueID, q, etag)
		switch items.Status(err) {
		case 0:
			return repository.Acknowledged{Bundle: b, Remaining: q.backlogOf(requested, nil, 0)}, err
		case http.StatusPreconditionFailed: // a concurrent Save or Dequeue has replaced the queue
		default:
			return repository.Acknowledged{}, err
		}
	}
}
