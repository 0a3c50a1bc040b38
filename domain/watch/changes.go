package watch

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// WithObjects combines two stores. The store objects contains the changes of objects, and the store
// changes contains the changes of all other resources.
func WithObjects(changes repository.Changes, objects repository.StoredChanges) repository.Changes {
	return &joinedChanges{changes, objects}
}

// A joinedChanges combines two stores. The store objects contains the changes of objects, and the
// store others contains the changes of all other resources.
type joinedChanges struct {
	others  repository.Changes
	objects repository.StoredChanges
}

// storeOf returns the store that contains a resource's changes.
func (j *joinedChanges) storeOf(r domain.Resource) repository.StoredChanges {
	if r.Kind() == domain.ObjectResource {
		return j.objects
	}
	return j.others
}

// Observe implements [repository.Changes].
func (j *joinedChanges) Observe(f func(domain.Change)) {
	j.others.Observe(f)
	j.objects.Observe(f)
}

// MarkWatched implements [repository.Changes].
func (j *joinedChanges) MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (int64, error) {
	return j.storeOf(r).MarkWatched(ctx, r, mayBeAbsent)
}

// Changes implements [repository.Changes].
func (j *joinedChanges) Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error) {
	return j.storeOf(r).Changes(ctx, r)
}

// RemoveChange implements [repository.Changes].
func (j *joinedChanges) RemoveChange(ctx context.Context, c domain.Change) error {
	return j.storeOf(c.Resource).RemoveChange(ctx, c)
}

// Unpublished implements [repository.Changes]. If one store fails, it returns the resources from
// the store that did not fail. If each store returns limit resources, the result contains half of
// the resources from each.
func (j *joinedChanges) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	found, err := j.others.Unpublished(ctx, before, limit)
	objects, failure := j.objects.Unpublished(ctx, before, limit)
	objects = objects[:min(len(objects), max(limit-len(found), limit/2))]
	found = append(found[:min(len(found), limit-len(objects))], objects...)
	return found, errors.Join(err, failure)
}

// TakeTurn implements [repository.Changes]. One call permits the search of both stores.
func (j *joinedChanges) TakeTurn(ctx context.Context, now time.Time, every time.Duration) (bool, error) {
	return j.others.TakeTurn(ctx, now, every)
}
