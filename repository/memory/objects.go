package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Objects keeps each object with all of its rows.
type Objects struct {
	mu      sync.Mutex
	objects map[domain.ObjectName]*domain.Object
	keeping repository.ObjectKeeping
	sweep   storedSweep
}

var _ repository.Objects = (*Objects)(nil)

// NewObjects returns an empty Objects.
func NewObjects() *Objects {
	return &Objects{objects: make(map[domain.ObjectName]*domain.Object)}
}

// Ingest implements [repository.Objects].
func (s *Objects) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	places := make(map[domain.ObjectName][]int)
	for i := range reports {
		places[reports[i].Name] = append(places[reports[i].Name], i)
	}
	results := make([]repository.ObjectResult, len(reports))
	for name, places := range places {
		object := s.objects[name]
		if object == nil {
			object = &domain.Object{Name: name, ForgottenTo: s.horizon()}
		}
		events := make([]domain.ObjectEvent, len(places))
		for i, place := range places {
			events[i] = reports[place].ObjectEvent
		}
		u := object.Update(nil)
		for i, outcome := range u.Apply(events) {
			results[places[i]].Outcome = outcome
		}
		changes, queries := u.Finish(domain.ObjectLimits{})
		if len(queries) > 0 {
			panic("an object that spills nothing asks for spilled rows")
		}
		if !changes.IsEmpty {
			s.objects[name] = &changes.Object
		}
	}
	return results, nil
}

// Object implements [repository.Objects].
func (s *Objects) Object(ctx context.Context, name domain.ObjectName) (domain.Object, error) {
	if err := ctx.Err(); err != nil {
		return domain.Object{}, fmt.Errorf("read object: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	object := s.objects[name]
	if object == nil {
		return domain.Object{}, domain.Errorf(domain.NotFound, "object %q is not known", domain.Clip(name.Key()))
	}
	return object.Clone(), nil
}

// History implements [repository.Objects].
func (s *Objects) History(ctx context.Context, name domain.ObjectName, below domain.ObjectOrder, limit int) ([]domain.ObjectRow, error) {
	object, err := s.Object(ctx, name)
	if err != nil {
		return nil, err
	}
	var rows []domain.ObjectRow
	for _, r := range slices.Backward(object.Rows) {
		if len(rows) < limit && (below == domain.ObjectOrder{} || r.Order().Compare(below) < 0) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// List implements [repository.Objects].
func (s *Objects) List(ctx context.Context, r repository.ObjectRange, limit int) (repository.ObjectPage, error) {
	if err := ctx.Err(); err != nil {
		return repository.ObjectPage{}, fmt.Errorf("list objects: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []domain.Object
	for name, object := range s.objects {
		if name.Bucket() == r.Bucket && strings.HasPrefix(name.Key(), r.Prefix) && name.Key() > r.After && (object.Current != nil || !r.OnlyCurrent) {
			found = append(found, object.Clone())
		}
	}
	slices.SortFunc(found, func(a, b domain.Object) int { return cmp.Compare(a.Name.Key(), b.Name.Key()) })
	if len(found) <= limit {
		return repository.ObjectPage{Objects: found}, nil
	}
	return repository.ObjectPage{Objects: found[:limit], More: true, After: found[limit-1].Name.Key()}, nil
}
