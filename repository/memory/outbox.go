package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// notice puts the notice of a bundle that its actor has just confirmed into the
// outbox.
func (s *Store) notice(r *recipient, b *domain.Bundle) {
	if b.Content != domain.Request {
		return
	}
	r.outbox = append(r.outbox, domain.Notice{
		Recipient: b.Cabinet.Recipient, Origin: b.Cabinet.Origin, Group: b.Group,
		Bundle: b.ID, List: b.List, Number: int64(r.gate(b.Group).generation), Since: s.opts.Clock(),
	})
}

// Notices implements [repository.Outbox].
func (s *Store) Notices(ctx context.Context, recipient domain.ActorID) ([]domain.Notice, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("notices: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.recipientOf(recipient).outbox), nil
}

// Delivered implements [repository.Outbox].
func (s *Store) Delivered(ctx context.Context, n domain.Notice) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delivered: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(n.Recipient)
	r.outbox = slices.DeleteFunc(r.outbox, func(o domain.Notice) bool { return o.Group == n.Group && o.Number == n.Number })
	return nil
}

// Waiting implements [repository.Outbox].
func (s *Store) Waiting(ctx context.Context, before time.Time, most int) ([]domain.ActorID, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("waiting: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var waiting []domain.ActorID
	for id, r := range s.recipients {
		waits := func(n domain.Notice) bool {
			return n.Since.Before(before) || n.Since.After(before.Add(repository.Ahead))
		}
		if len(waiting) < most && slices.ContainsFunc(r.outbox, waits) {
			waiting = append(waiting, id)
		}
	}
	return waiting, nil
}
