package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Watches stores watches in a map.
type Watches struct {
	cursors *Cursors // counts changes of watches in ShardEntry.Changes

	mu      sync.Mutex
	all     map[domain.CursorID]*repository.Watch
	version int
}

var _ repository.Watches = (*Watches)(nil)

// NewWatches returns an empty Watches that counts changes in the entries of cursors.
func NewWatches(cursors *Cursors) *Watches {
	return &Watches{cursors: cursors, all: make(map[domain.CursorID]*repository.Watch)}
}

func noWatch(id domain.WatchID) error {
	return domain.Errorf(domain.NotFound, "there is no watch %s", id)
}

// storeWatch stores a copy of w with the next version.
func (s *Watches) storeWatch(w *repository.Watch) {
	stored := *w
	s.version++
	stored.Version = repository.WatchVersion(strconv.Itoa(s.version))
	s.all[w.ID.Cursor(w.Owner)] = &stored
}

// CreateWatch implements [repository.Watches].
func (s *Watches) CreateWatch(ctx context.Context, w *repository.Watch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create watch: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[w.ID.Cursor(w.Owner)] != nil {
		return domain.Errorf(domain.Conflict, "watch %s exists", w.ID)
	}
	s.storeWatch(w)
	return nil
}

// ReplaceWatch implements [repository.Watches].
func (s *Watches) ReplaceWatch(ctx context.Context, w *repository.Watch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("replace watch: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch found := s.all[w.ID.Cursor(w.Owner)]; {
	case found == nil:
		return noWatch(w.ID)
	case found.Version != w.Version:
		return domain.Errorf(domain.Conflict, "watch %s has changed", w.ID)
	}
	s.storeWatch(w)
	s.cursors.noteWatchChange(w.ID.Cursor(w.Owner), w.Resource.Stream())
	return nil
}

// Watch implements [repository.Watches].
func (s *Watches) Watch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*repository.Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[id.Cursor(owner)]
	if found == nil {
		return nil, noWatch(id)
	}
	w := *found
	return &w, nil
}

// CurrentWatch implements [repository.Watches].
func (s *Watches) CurrentWatch(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*repository.Watch, error) {
	return s.Watch(ctx, owner, id)
}

// Watches implements [repository.Watches].
func (s *Watches) Watches(ctx context.Context, owner domain.ActorID, offset, limit int) ([]*repository.Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("watches: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*repository.Watch
	for _, w := range s.all {
		if w.Owner == owner {
			clone := *w
			found = append(found, &clone)
		}
	}
	slices.SortFunc(found, func(a, b *repository.Watch) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	found = found[min(offset, len(found)):]
	return found[:min(limit, len(found))], nil
}

// DeleteWatch implements [repository.Watches].
func (s *Watches) DeleteWatch(ctx context.Context, owner domain.ActorID, id domain.WatchID) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete watch: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := s.all[id.Cursor(owner)]
	if deleted == nil {
		return noWatch(id)
	}
	delete(s.all, id.Cursor(owner))
	s.cursors.noteWatchChange(id.Cursor(owner), deleted.Resource.Stream())
	return nil
}
