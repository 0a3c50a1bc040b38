package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Parties stores the parties of the broker in a map.
type Parties struct {
	mu      sync.Mutex
	all     map[domain.PartyID]*repository.Party
	version int
	changes *Resources // stores changes for watches; nil if they are not stored
}

var _ repository.Parties = (*Parties)(nil)

// NewParties returns an empty Parties.
func NewParties() *Parties { return &Parties{all: make(map[domain.PartyID]*repository.Party)} }

// StoreChangesIn makes s store changes for watches in changes. It returns s.
func (s *Parties) StoreChangesIn(changes *Resources) *Parties {
	s.changes = changes
	return s
}

// PutParty implements [repository.Parties].
func (s *Parties) PutParty(ctx context.Context, p *repository.Party) (repository.PartyVersion, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("put party: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[p.ID]
	switch {
	case found == nil && p.Version != "":
		return "", noParty(p.ID)
	case found != nil && found.Version != p.Version:
		return "", domain.Errorf(domain.Conflict, "%s has changed", p.ID)
	}
	stored := p.Clone()
	s.version++
	stored.Version = repository.PartyVersion(strconv.Itoa(s.version))
	s.all[p.ID] = stored
	var event domain.ChangeEvent
	if found != nil {
		event = domain.ResourceUpdated
	}
	s.changes.noteChange(domain.PartyOf(p.ID), event)
	return stored.Version, nil
}

// Party implements [repository.Parties].
func (s *Parties) Party(ctx context.Context, id domain.PartyID) (*repository.Party, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("party: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[id] == nil {
		return nil, noParty(id)
	}
	return s.all[id].Clone(), nil
}

// Parties implements [repository.Parties].
func (s *Parties) Parties(ctx context.Context, list domain.PartyList, first string, limit int) ([]*repository.Party, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("parties: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*repository.Party
	for id, p := range s.all {
		if id.List() == list && id.String() >= first {
			found = append(found, p.Clone())
		}
	}
	slices.SortFunc(found, func(a, b *repository.Party) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return found[:min(limit, len(found))], nil
}

func noParty(id domain.PartyID) error {
	return domain.Errorf(domain.NotFound, "there is no %s in %s", id, id.List())
}
