package watch

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// WithObjects returns changes that include the changes of objects, which are stored in another
// store.
func WithObjects(changes repository.Changes, objects repository.StoredChanges) repository.Changes {
	return &joinedChanges{changes, objects}
}

// joinedChanges combines two stores: objects for the changes of objects, and others for all other
// changes.
type joinedChanges struct {
	others  repository.Changes
	objects repository.StoredChanges
}

// storeOf returns the store with the changes of a resource.
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

// Unpublished implements [repository.Changes]. If one store fails, it still returns the resources of
// the other store. If both stores return limit resources, the result has half of the resources from
// each.
func (j *joinedChanges) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	found, err := j.others.Unpublished(ctx, before, limit)
	objects, failure := j.objects.Unpublished(ctx, before, limit)
	objects = objects[:min(len(objects), max(limit-len(found), limit/2))]
	found = append(found[:min(len(found), limit-len(objects))], objects...)
	return found, errors.Join(err, failure)
}

// TakeTurn implements [repository.Changes]. The turn is valid for both stores.
func (j *joinedChanges) TakeTurn(ctx context.Context, now time.Time, every time.Duration) (bool, error) {
	return j.others.TakeTurn(ctx, now, every)
}
