package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.StoredChanges = (*Objects)(nil)

// changeTime returns the current time.
func (s *Objects) changeTime() time.Time {
	if s.keeping.Clock == nil {
		return time.Now().UTC()
	}
	return s.keeping.Clock().UTC()
}

// storeObject stores an object, and its changes if it has any.
func (s *Objects) storeObject(changes *domain.ObjectChanges) {
	o := &changes.Object
	s.objects[o.Name] = o
	if s.topic != nil {
		s.topic.storeChanges(changes)
	}
	if changes.Event == "" {
		return
	}
	r := domain.ObjectResourceOf(o.Name)
	c := domain.Change{Resource: r, Version: o.Changes, Event: changes.Event, At: s.changeTime()}
	s.changes[r] = append(s.changes[r], c)
	if s.observe != nil {
		s.observe(c)
	}
}

// Observe implements [repository.StoredChanges].
func (s *Objects) Observe(f func(domain.Change)) { s.observe = f }

// MarkWatched implements [repository.StoredChanges].
func (s *Objects) MarkWatched(ctx context.Context, r domain.Resource, _ bool) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("watch object: %w", err)
	}
	name, err := r.Object()
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	object := s.objects[name]
	if object == nil || object.Current == nil {
		return 0, domain.Errorf(domain.NotFound, "there is no such object, or it was deleted")
	}
	object.IsWatched = true
	return object.Changes, nil
}

// Changes implements [repository.StoredChanges].
func (s *Objects) Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes[r]), nil
}

// RemoveChange implements [repository.StoredChanges].
func (s *Objects) RemoveChange(ctx context.Context, c domain.Change) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove change: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes[c.Resource] = slices.DeleteFunc(s.changes[c.Resource], func(left domain.Change) bool { return left.Version == c.Version })
	return nil
}

// Unpublished implements [repository.StoredChanges].
func (s *Objects) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []domain.Resource
	for r, changes := range s.changes {
		if slices.ContainsFunc(changes, func(c domain.Change) bool {
			return c.At.Before(before) || c.At.After(before.Add(repository.MaxClockAhead))
		}) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b domain.Resource) int { return strings.Compare(a.String(), b.String()) })
	return found[:min(limit, len(found))], nil
}
