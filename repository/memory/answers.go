package memory

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Answer implements [repository.Answers].
func (s *Store) Answer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string, body domain.Body) (domain.Bundle, error) {
	if err := repository.CheckObjectName(object); err != nil {
		return domain.Bundle{}, fmt.Errorf("answer: %w", err)
	}
	return s.note(ctx, "answer", recipient, id, func(b *domain.Bundle) {
		b.Object, b.Body, b.Trouble = object, body, domain.Trouble{}
	})
}

// Fail implements [repository.Answers].
func (s *Store) Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.Trouble) (domain.Bundle, error) {
	return s.note(ctx, "fail", recipient, id, func(b *domain.Bundle) {
		why.Failures = b.Trouble.Failures + 1
		b.Trouble = why
	})
}

// note changes an open bundle, unless it has been answered.
func (s *Store) note(ctx context.Context, what string, recipient domain.ActorID, id domain.BundleID, change func(*domain.Bundle)) (domain.Bundle, error) {
	if err := ctx.Err(); err != nil {
		return domain.Bundle{}, fmt.Errorf("%s: %w", what, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gate, err := s.recipientOf(recipient).having(id)
	if err != nil {
		return domain.Bundle{}, err
	}
	b := gate.open
	switch {
	case b.Content != domain.Request:
		return domain.Bundle{}, domain.Errorf(domain.Invalid, "%s: bundle %s has its content already: it is in mode %s", what, id, b.Content)
	case b.IsUnanswered():
		change(b)
	}
	return *clone(b), nil
}
