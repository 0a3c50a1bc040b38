package push

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Observe implements [repository.Changes].
func (s *Store) Observe(f func(domain.Change)) { s.observe = f }

// A watchedWrite describes a write that replaces the document of a resource, which may be watched.
type watchedWrite struct {
	resource domain.Resource
	event    domain.ChangeEvent // empty if the write creates the resource
	etag     azcore.ETag        // etag of the replaced document; "" if the document is new
	doc      any
	mark     *watchedMark // whether the replaced document is watched, and its last version
}

// replaceWatched replaces the document of a resource and returns the new etag. If the resource is
// watched, the same batch stores the change, which is published later. The write is refused if w.mark is
// stale, because it is conditional on the etag of the document that contains w.mark.
func (s *Store) replaceWatched(ctx context.Context, c *client.Call, w *watchedWrite) (azcore.ETag, error) {
	at, err := watchableOf(w.resource)
	if err != nil {
		return "", err
	}
	// A crash before this write has no effect. If the node crashes after this write, the resource is
	// replaced, and the change for its watches is stored.
	if w.event == "" || !w.mark.IsWatched {
		return c.Put(ctx, s.cursors, at.key, at.id, w.etag, w.doc)
	}
	w.mark.Changes++
	change := domain.Change{Resource: w.resource, Version: w.mark.Changes, Event: w.event, At: s.opts.Clock().UTC().Truncate(time.Microsecond)}
	results, err := c.Batch(ctx, s.cursors, at.key, false, func(b *azcosmos.TransactionalBatch) {
		putInBatch(b, at.id, w.etag, w.doc)
		putInBatch(b, at.changeID(change.Version), "", at.newChangeDoc(&change))
	})
	if err != nil {
		return "", err
	}
	s.observe(change) // if the outcome of the write is unknown, a later call of Unpublished finds the change
	return results[0].ETag, nil
}

// MarkWatched implements [repository.Changes]. It patches the current document. A concurrent change of
// the resource is refused if it read the document before the patch, because its write is conditional on
// the etag.
func (s *Store) MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (version int64, err error) {
	c := s.client.Begin("mark watched")
	at, err := watchableOf(r)
	if err != nil {
		return 0, err
	}
	err = c.Retry(ctx, func() error {
		var conditions []string
		if !mayBeAbsent && at.ifExists != "" {
			conditions = append(conditions, at.ifExists)
		}
		ops := client.NewPatch(at.kind, conditions...)
		ops.AppendSet("/watched", true)
		var mark watchedMark
		// If the node crashes after this write, the resource is marked as watched, and its changes are
		// published although it has no watch.
		err := c.Patch(ctx, s.cursors, at.key, at.id, ops, &mark)
		switch isMissing := client.IsNotFound(err); {
		case err == nil:
			version = mark.Changes
			return nil
		case isMissing && mayBeAbsent:
			doc := newResourceDoc(r)
			doc.WriteID, doc.IsWatched = s.client.NewID(), true
			// A crash after this write leaves a document that marks a missing resource as watched.
			_, err = c.Put(ctx, s.cursors, doc.PartitionKey, resourceID, "", doc)
			return staleIfRefused(err)
		case isMissing, !mayBeAbsent && client.StatusOf(err) == http.StatusPreconditionFailed:
			return domain.Errorf(domain.NotFound, "there is no such resource")
		}
		return err
	})
	return version, c.Outcome("watch "+r.String(), err)
}

// Changes implements [repository.Changes].
func (s *Store) Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error) {
	c := s.client.Begin("read changes")
	at, err := watchableOf(r)
	if err != nil {
		return nil, err
	}
	docs, err := client.All[resourceChangeDoc](ctx, c.Query(s.cursors, at.key, "SELECT * FROM c WHERE c.kind = @kind AND c.resource = @resource",
		azcosmos.QueryParameter{Name: "@kind", Value: changeDocument.Name}, azcosmos.QueryParameter{Name: "@resource", Value: r.Key()}))
	changes := make([]domain.Change, 0, len(docs))
	for _, d := range docs {
		change, damage := d.change()
		if damage != nil {
			err = errors.Join(err, damage)
			continue
		}
		changes = append(changes, change)
	}
	slices.SortFunc(changes, func(a, b domain.Change) int { return cmp.Compare(a.Version, b.Version) })
	return changes, c.Outcome("read the changes of "+r.String(), err)
}

// RemoveChange implements [repository.Changes].
func (s *Store) RemoveChange(ctx context.Context, change domain.Change) error {
	c := s.client.Begin("remove change")
	at, err := watchableOf(change.Resource)
	if err == nil {
		// If the node crashes before this write, the change is published again, and the stream recognizes
		// the duplicate.
		err = c.DeleteIfExists(ctx, s.cursors, at.key, at.changeID(change.Version))
	}
	return c.Outcome("remove a change of "+change.Resource.String(), err)
}

// TakeTurn implements [repository.Changes].
func (s *Store) TakeTurn(ctx context.Context, now time.Time, every time.Duration) (bool, error) {
	c := s.client.Begin("take turn")
	var last turnDoc
	etag, err := c.Read(ctx, s.cursors, turnsKey, changesTurn, &last)
	if err != nil && !client.IsNotFound(err) {
		return false, c.Outcome("read whose turn it is to look for changes", err)
	}
	if since := now.Sub(fromMicros(last.Taken)); err == nil && since >= 0 && since < every {
		return false, nil
	}
	next := &turnDoc{ID: changesTurn, PartitionKey: turnsKey, Kind: turnDocument.Name, Taken: toMicros(now), Document: last.Document}
	// If the node crashes after this write, no node searches for unpublished changes until the interval
	// has passed.
	_, err = c.Put(ctx, s.cursors, turnsKey, changesTurn, etag, next)
	if client.IsRefused(err) {
		return false, nil // another node searches for unpublished changes in this interval
	}
	return err == nil, c.Outcome("take the turn to look for changes", err)
}

// Unpublished implements [repository.Changes].
func (s *Store) Unpublished(ctx context.Context, before time.Time, limit int) (found []domain.Resource, err error) {
	c := s.client.Begin("look for changes")
	q := c.QueryAllPartitions(s.cursors, changeDocument.Name,
		"SELECT c.resource FROM c WHERE c.kind = @kind AND (c.at < @before OR c.at > @ahead)",
		azcosmos.QueryParameter{Name: "@kind", Value: changeDocument.Name},
		azcosmos.QueryParameter{Name: "@before", Value: toMicros(before)},
		azcosmos.QueryParameter{Name: "@ahead", Value: toMicros(before.Add(repository.MaxClockAhead))})
	var damage error
	for !q.IsDone() && len(found) < limit {
		items, err := q.Next(ctx, limit)
		if q.SkipDamage(err) {
			damage = err
			continue
		}
		if err != nil {
			return found, c.Outcome("look for changes", err)
		}
		for _, item := range items {
			var d resourceChangeDoc
			err := q.Decode(item, &d)
			if err == nil {
				var r domain.Resource
				if r, err = domain.ParseResourceKey(d.Resource); err == nil && !slices.Contains(found, r) {
					found = append(found, r)
				}
			}
			if err != nil {
				damage = err
			}
		}
	}
	return found[:min(limit, len(found))], c.Outcome("look for changes", damage)
}
