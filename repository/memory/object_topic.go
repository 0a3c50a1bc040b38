package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An ObjectTopic contains the unpublished changes of the current states of objects.
type ObjectTopic struct {
	objects     *Objects
	unpublished []domain.ObjectChange
	observe     func(domain.ObjectChange)
}

var _ repository.ObjectTopic = (*ObjectTopic)(nil)

// Topic returns the topic of s. s stores changes for the topic only after the first call of Topic.
func (s *Objects) Topic() *ObjectTopic {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topic == nil {
		s.topic = &ObjectTopic{objects: s, observe: func(domain.ObjectChange) {}}
	}
	return s.topic
}

// storeChanges stores a change for the topic if an update has changed the current state of its object.
func (t *ObjectTopic) storeChanges(changes *domain.ObjectChanges) {
	if c := changes.StateChange(t.objects.changeTime()); c != nil {
		t.unpublished = append(t.unpublished, *c)
		t.observe(*c)
	}
}

// Observe implements [repository.ObjectTopic].
func (t *ObjectTopic) Observe(f func(domain.ObjectChange)) { t.observe = f }

// Remove implements [repository.ObjectTopic].
func (t *ObjectTopic) Remove(ctx context.Context, changes []domain.ObjectChange) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove changes: %w", err)
	}
	t.objects.mu.Lock()
	defer t.objects.mu.Unlock()
	t.unpublished = slices.DeleteFunc(t.unpublished, func(left domain.ObjectChange) bool {
		return slices.ContainsFunc(changes, func(c domain.ObjectChange) bool { return c.Name == left.Name && c.Version == left.Version })
	})
	return nil
}

// Unpublished implements [repository.ObjectTopic].
func (t *ObjectTopic) Unpublished(ctx context.Context, before time.Time, limit int) (found []domain.ObjectChange, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	t.objects.mu.Lock()
	defer t.objects.mu.Unlock()
	for _, c := range t.unpublished {
		if c.At.Before(before) || c.At.After(before.Add(repository.MaxClockAhead)) {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b domain.ObjectChange) int {
		return cmp.Or(domain.CompareObjectNames(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return found[:min(limit, len(found))], nil
}
