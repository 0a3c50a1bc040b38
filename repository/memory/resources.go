package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Resources stores the documents of clients, and the changes of watched documents.
type Resources struct {
	clock   func() time.Time
	observe func(domain.Change)

	mu      sync.Mutex
	all     map[domain.Resource]*watchedResource
	version int
	turn    time.Time // time now of the last TakeTurn that returned true
}

var (
	_ repository.Resources = (*Resources)(nil)
	_ repository.Changes   = (*Resources)(nil)
)

// A watchedResource is the state of a resource. It remains after the deletion of its document, so that
// its versions continue.
type watchedResource struct {
	document  *repository.Resource // nil if the document does not exist
	exists    bool                 // whether the party or subscription exists; documents do not use this field
	isWatched bool
	version   int64 // version of the last change
	changes   []domain.Change
}

// NewResources returns an empty Resources. clock must not be nil.
func NewResources(clock func() time.Time) *Resources {
	return &Resources{clock: clock, observe: func(domain.Change) {}, all: make(map[domain.Resource]*watchedResource)}
}

// Observe implements [repository.Changes].
func (s *Resources) Observe(f func(domain.Change)) { s.observe = f }

func noResource(r domain.Resource) error {
	return domain.Errorf(domain.NotFound, "there is no %s", r)
}

// ensureResource returns the state of a resource, and adds it if it is missing.
func (s *Resources) ensureResource(r domain.Resource) *watchedResource {
	if s.all[r] == nil {
		s.all[r] = &watchedResource{}
	}
	return s.all[r]
}

// storeChange stores a change if the resource is watched.
func (s *Resources) storeChange(r domain.Resource, event domain.ChangeEvent) {
	found := s.ensureResource(r)
	if !found.isWatched {
		return
	}
	found.version++
	c := domain.Change{Resource: r, Version: found.version, Event: event, At: s.clock().UTC()}
	found.changes = append(found.changes, c)
	s.observe(c)
}

// noteChange records the creation (event "") or a change of a party or subscription.
func (s *Resources) noteChange(r domain.Resource, event domain.ChangeEvent) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensureResource(r).exists = event != domain.ResourceDeleted
	if event != "" {
		s.storeChange(r, event)
	}
}

// Resource implements [repository.Resources].
func (s *Resources) Resource(ctx context.Context, r domain.Resource) (*repository.Resource, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.ensureResource(r).document
	if found == nil {
		return nil, noResource(r)
	}
	clone := *found
	clone.Body = slices.Clone(found.Body)
	return &clone, nil
}

// PutResource implements [repository.Resources].
func (s *Resources) PutResource(ctx context.Context, r *repository.Resource) (repository.ResourceVersion, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("put resource: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.ensureResource(r.Resource)
	if err := found.checkVersion(r.Resource, r.Version); err != nil {
		return "", err
	}
	if found.document != nil {
		s.storeChange(r.Resource, domain.ResourceUpdated)
	}
	stored := *r
	stored.Body = slices.Clone(r.Body)
	s.version++
	stored.Version = repository.ResourceVersion(strconv.Itoa(s.version))
	found.document = &stored
	return stored.Version, nil
}

// checkVersion returns an error unless the document has this version. The empty version requires that
// the document does not exist.
func (r *watchedResource) checkVersion(name domain.Resource, version repository.ResourceVersion) error {
	switch {
	case r.document == nil && version != "":
		return noResource(name)
	case r.document != nil && r.document.Version != version:
		return domain.Errorf(domain.Conflict, "%s has changed", name)
	}
	return nil
}

// DeleteResource implements [repository.Resources].
func (s *Resources) DeleteResource(ctx context.Context, r domain.Resource, version repository.ResourceVersion) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete resource: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.ensureResource(r)
	if found.document == nil {
		return noResource(r)
	}
	if err := found.checkVersion(r, version); err != nil {
		return err
	}
	found.document = nil
	s.storeChange(r, domain.ResourceDeleted)
	return nil
}

// MarkWatched implements [repository.Changes].
func (s *Resources) MarkWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("mark watched: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.ensureResource(r)
	if found.document == nil && !found.exists && !mayBeAbsent {
		return 0, noResource(r)
	}
	found.isWatched = true
	return found.version, nil
}

// Changes implements [repository.Changes].
func (s *Resources) Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ensureResource(r).changes), nil
}

// RemoveChange implements [repository.Changes].
func (s *Resources) RemoveChange(ctx context.Context, c domain.Change) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove change: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.ensureResource(c.Resource)
	found.changes = slices.DeleteFunc(found.changes, func(left domain.Change) bool { return left.Version == c.Version })
	return nil
}

// Unpublished implements [repository.Changes].
func (s *Resources) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("unpublished: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []domain.Resource
	for r, state := range s.all {
		if slices.ContainsFunc(state.changes, func(c domain.Change) bool {
			return c.At.Before(before) || c.At.After(before.Add(repository.MaxClockAhead))
		}) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b domain.Resource) int { return strings.Compare(a.String(), b.String()) })
	return found[:min(limit, len(found))], nil
}

// TakeTurn implements [repository.Changes].
func (s *Resources) TakeTurn(ctx context.Context, now time.Time, every time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("take turn: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := now.Sub(s.turn); since >= 0 && since < every {
		return false, nil
	}
	s.turn = now
	return true, nil
}
