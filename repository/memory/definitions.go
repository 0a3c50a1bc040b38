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

// Definitions stores definitions of subscriptions in a map.
type Definitions struct {
	mu      sync.Mutex
	all     map[domain.SubscriptionID]*repository.Definition // nil: deleted
	version int
	cursors *Cursors   // counts changes of subscriptions in ShardEntry.Changes; nil: changes are not counted
	changes *Resources // stores changes for watches; nil if they are not stored
}

var _ repository.Definitions = (*Definitions)(nil)

// NewDefinitions returns an empty Definitions.
func NewDefinitions() *Definitions {
	return &Definitions{all: make(map[domain.SubscriptionID]*repository.Definition)}
}

// CountChangesIn makes s count changes in the entries of cursors. It returns s.
func (s *Definitions) CountChangesIn(cursors *Cursors) *Definitions {
	s.cursors = cursors
	return s
}

// StoreChangesIn makes s store changes for watches in changes. It returns s.
func (s *Definitions) StoreChangesIn(changes *Resources) *Definitions {
	s.changes = changes
	return s
}

func (s *Definitions) noteChange(owner domain.ActorID, id domain.SubscriptionID, event domain.ChangeEvent) {
	s.changes.noteChange(domain.SubscriptionResourceOf(owner, id), event)
	if s.cursors != nil {
		s.cursors.noteChange(id.Cursor())
	}
}

func (s *Definitions) nextVersion() repository.DefinitionVersion {
	s.version++
	return repository.DefinitionVersion(strconv.Itoa(s.version))
}

// listDefinitions returns the definitions of an owner, in the order of their ids.
func (s *Definitions) listDefinitions(owner domain.ActorID) []*repository.Definition {
	var found []*repository.Definition
	for _, d := range s.all {
		if d != nil && d.Owner == owner {
			found = append(found, d.Clone())
		}
	}
	slices.SortFunc(found, func(a, b *repository.Definition) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return found
}

// CreateSubscription implements [repository.Definitions].
func (s *Definitions) CreateSubscription(ctx context.Context, d *repository.Definition) (*repository.Definition, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, fmt.Errorf("create subscription: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch stored, used := s.all[d.ID]; {
	case used && stored == nil:
		return nil, false, domain.Errorf(domain.Conflict, "subscription %s was deleted", d.ID)
	case used && stored.Owner != d.Owner:
		return nil, false, domain.Errorf(domain.Conflict, "subscription %s has another owner", d.ID)
	case used:
		return stored.Clone(), false, nil
	}
	if len(s.listDefinitions(d.Owner)) >= domain.MaxSubscriptions {
		return nil, false, repository.NewSubscriptionLimitError()
	}
	stored := d.Clone()
	stored.Version = s.nextVersion()
	s.all[d.ID] = stored
	s.changes.noteChange(domain.SubscriptionResourceOf(d.Owner, d.ID), "")
	return stored.Clone(), true, nil
}

// findDefinition returns the definition of a subscription of owner.
func (s *Definitions) findDefinition(owner domain.ActorID, id domain.SubscriptionID, version repository.DefinitionVersion) (*repository.Definition, error) {
	d := s.all[id]
	switch {
	case d == nil || d.Owner != owner:
		return nil, domain.Errorf(domain.NotFound, "there is no subscription %s", id)
	case version != "" && d.Version != version:
		return nil, domain.Errorf(domain.Conflict, "subscription %s has changed", id)
	}
	return d, nil
}

// ReplaceSubscription implements [repository.Definitions].
func (s *Definitions) ReplaceSubscription(ctx context.Context, d *repository.Definition) (repository.DefinitionVersion, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("replace subscription: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := s.findDefinition(d.Owner, d.ID, d.Version)
	if err != nil {
		return "", err
	}
	if d.Version == "" {
		return "", domain.Errorf(domain.Conflict, "subscription %s has a version", d.ID)
	}
	created := stored.Created
	*stored = *d.Clone()
	stored.Created, stored.Version = created, s.nextVersion()
	s.noteChange(d.Owner, d.ID, domain.ResourceUpdated)
	return stored.Version, nil
}

// Subscription implements [repository.Definitions].
func (s *Definitions) Subscription(ctx context.Context, id domain.SubscriptionID) (*repository.Definition, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("subscription: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[id] == nil {
		return nil, domain.Errorf(domain.NotFound, "there is no subscription %s", id)
	}
	return s.all[id].Clone(), nil
}

// CurrentSubscription implements [repository.Definitions].
func (s *Definitions) CurrentSubscription(ctx context.Context, id domain.SubscriptionID) (*repository.Definition, error) {
	return s.Subscription(ctx, id)
}

// Subscriptions implements [repository.Definitions].
func (s *Definitions) Subscriptions(ctx context.Context, owner domain.ActorID) ([]*repository.Definition, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("subscriptions: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listDefinitions(owner), nil
}

// DeleteSubscription implements [repository.Definitions].
func (s *Definitions) DeleteSubscription(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, version repository.DefinitionVersion) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete subscription: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.findDefinition(owner, id, version); err != nil {
		return err
	}
	s.all[id] = nil
	s.noteChange(owner, id, domain.ResourceDeleted)
	return nil
}
