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
	return s.changeBundle(ctx, "answer", recipient, id, func(b *domain.Bundle) {
		if b.IsUnanswered() {
			b.Object, b.Body, b.ContentFailure = object, body, domain.ContentFailure{}
		}
	})
}

// ReplaceAnswer implements [repository.Answers].
func (s *Store) ReplaceAnswer(ctx context.Context, recipient domain.ActorID, id domain.BundleID, gone, object string, body domain.Body) (domain.Bundle, error) {
	for _, name := range []string{gone, object} {
		if err := repository.CheckObjectName(name); err != nil {
			return domain.Bundle{}, fmt.Errorf("answer again: %w", err)
		}
	}
	return s.changeBundle(ctx, "answer again", recipient, id, func(b *domain.Bundle) {
		if b.Gone && b.Object == gone {
			b.Object, b.Gone, b.Body, b.ContentFailure = object, false, body, domain.ContentFailure{}
		}
	})
}

// MarkGone implements [repository.Answers].
func (s *Store) MarkGone(ctx context.Context, recipient domain.ActorID, id domain.BundleID, object string) (domain.Bundle, error) {
	if err := repository.CheckObjectName(object); err != nil {
		return domain.Bundle{}, fmt.Errorf("mark content as gone: %w", err)
	}
	return s.changeBundle(ctx, "mark content as gone", recipient, id, func(b *domain.Bundle) {
		b.Gone = b.Gone || b.Object == object
	})
}

// Fail implements [repository.Answers].
func (s *Store) Fail(ctx context.Context, recipient domain.ActorID, id domain.BundleID, why domain.ContentFailure) (domain.Bundle, error) {
	return s.changeBundle(ctx, "fail", recipient, id, func(b *domain.Bundle) {
		if b.LacksContent() {
			why.Failures = b.ContentFailure.Failures + 1
			b.ContentFailure = why
			s.noteFailure(recipient, b)
		}
	})
}

// noteFailure records the time at which the domain first failed to produce the content of b.
func (s *Store) noteFailure(recipient domain.ActorID, b *domain.Bundle) {
	if gate := s.recipients[recipient].ensureGate(b.Group); b.ContentFailure.Failures == 1 {
		gate.failingSince = s.opts.Clock()
	}
}

// BundleRecipients implements [repository.Answers].
func (s *Store) BundleRecipients(ctx context.Context, id domain.BundleID) ([]domain.ActorID, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("recipients of bundle %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var recipients []domain.ActorID
	for recipient, r := range s.recipients {
		if _, err := r.gateOf(id); err == nil {
			recipients = append(recipients, recipient)
		}
	}
	return recipients, nil
}

// changeBundle applies a change to an open bundle, and returns the bundle.
func (s *Store) changeBundle(ctx context.Context, what string, recipient domain.ActorID, id domain.BundleID, change func(*domain.Bundle)) (domain.Bundle, error) {
	if err := ctx.Err(); err != nil {
		return domain.Bundle{}, fmt.Errorf("%s: %w", what, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gate, err := s.recipientOf(recipient).gateOf(id)
	if err != nil {
		return domain.Bundle{}, err
	}
	b := gate.open
	if b.Content != domain.Request {
		return domain.Bundle{}, domain.Errorf(domain.Invalid, "%s: bundle %s has its content already: it is in mode %s", what, id, b.Content)
	}
	change(b)
	return *cloneBundle(b), nil
}
