package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Objects stores objects. It keeps all stored rows of an object in Object.Rows: no rows are spilled.
type Objects struct {
	mu      sync.Mutex
	objects map[domain.ObjectName]*domain.Object
	keeping repository.ObjectKeeping
	changes map[domain.Resource][]domain.Change // changes that were not removed
	observe func(domain.Change)                 // nil: none
	topic   *ObjectTopic                        // nil: none
	sweep   storedSweep
}

var _ repository.Objects = (*Objects)(nil)

// NewObjects returns an empty Objects.
func NewObjects() *Objects {
	return &Objects{objects: make(map[domain.ObjectName]*domain.Object), changes: make(map[domain.Resource][]domain.Change)}
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
			object = &domain.Object{Name: name, ForgottenTo: s.retentionHorizon()}
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
		for _, place := range places {
			results[place].Doubt = changes.Object.Doubt
			results[place].Exists = changes.Object.Current != nil
		}
		if !changes.IsEmpty {
			s.storeObject(&changes)
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
		return domain.Object{}, domain.Errorf(domain.NotFound, "object %q is not known", domain.Shorten(name.Key()))
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

// Row implements [repository.Objects].
func (s *Objects) Row(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID) (domain.ObjectRow, error) {
	object, err := s.Object(ctx, name)
	if err != nil {
		return domain.ObjectRow{}, err
	}
	for _, r := range object.Rows {
		if r.ID() == id {
			return r, nil
		}
	}
	return domain.ObjectRow{}, noSuchRow(name)
}

func noSuchRow(name domain.ObjectName) error {
	return domain.Errorf(domain.NotFound, "object %q has no such row", domain.Shorten(name.Key()))
}

// List implements [repository.Objects].
func (s *Objects) List(ctx context.Context, r repository.ObjectRange, limit int) (repository.ObjectPage, error) {
	if err := ctx.Err(); err != nil {
		return repository.ObjectPage{}, fmt.Errorf("list objects: %w", err)
	}
	found := s.objectsOf(r)
	if len(found) <= limit {
		return repository.ObjectPage{Objects: found}, nil
	}
	return repository.ObjectPage{Objects: found[:limit], More: true, After: found[limit-1].Name.Key()}, nil
}

// objectsOf returns the objects of a range. With AnyOrder it returns them in descending order of keys,
// so that callers cannot rely on an order.
func (s *Objects) objectsOf(r repository.ObjectRange) (found []domain.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	compare := cmp.Compare[string]
	if r.AnyOrder {
		compare = func(a, b string) int { return cmp.Compare(b, a) }
	}
	for name, object := range s.objects {
		if name.Bucket() == r.Bucket && strings.HasPrefix(name.Key(), r.Prefix) && (r.UpTo == "" || name.Key() <= r.UpTo) && (r.After == "" || compare(name.Key(), r.After) > 0) && hasCurrent(object, r) {
			found = append(found, object.Clone())
		}
	}
	slices.SortFunc(found, func(a, b domain.Object) int { return compare(a.Name.Key(), b.Name.Key()) })
	return found
}

func hasCurrent(object *domain.Object, r repository.ObjectRange) bool {
	if !r.OnlyCurrent {
		return true
	}
	misses := func(m repository.ObjectMatch) bool { return !m.Has(object.Current) }
	return object.Current != nil && !slices.ContainsFunc(r.Matches, misses)
}

// Count implements [repository.Objects].
func (s *Objects) Count(ctx context.Context, r repository.ObjectRange) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("count objects: %w", err)
	}
	r.After = ""
	return int64(len(s.objectsOf(r))), nil
}

// Buckets implements [repository.Objects].
func (s *Objects) Buckets(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	buckets := make(map[string]struct{})
	for name := range s.objects {
		buckets[name.Bucket()] = struct{}{}
	}
	return slices.Sorted(maps.Keys(buckets)), nil
}

// Amend implements [repository.Objects].
func (s *Objects) Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (domain.ObjectRow, error) {
	if err := ctx.Err(); err != nil {
		return domain.ObjectRow{}, fmt.Errorf("amend object: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	object := s.objects[name]
	if object == nil {
		return domain.ObjectRow{}, domain.Errorf(domain.NotFound, "object %q is not known", domain.Shorten(name.Key()))
	}
	u := object.Update(nil)
	row, err := u.Amend(id, change)
	switch {
	case err != nil:
		return domain.ObjectRow{}, err
	case row == nil:
		return domain.ObjectRow{}, noSuchRow(name)
	}
	changes, _ := u.Finish(domain.ObjectLimits{})
	s.storeObject(&changes)
	return *row, nil
}
