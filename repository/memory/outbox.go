package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// addNotices adds the notices of an acknowledged bundle to the outbox. It reports whether it has added
// a notice.
func (s *Store) addNotices(r *storedRecipient, b *domain.Bundle) bool {
	n := domain.Notice{
		Recipient: b.Cabinet.Recipient, Origin: b.Cabinet.Origin, Group: b.Group,
		Bundle: b.ID, Number: int64(r.ensureGate(b.Group).generation), Peeked: b.Peeked,
	}
	before := len(r.outbox)
	if b.Content == domain.Request {
		n := n
		n.List, n.Since = b.List, s.opts.Clock()
		r.outbox = append(r.outbox, n)
	}
	if len(r.dequeueRequests) > 0 {
		n.Audience, n.Events, n.Since = domain.ForSubscribers, b.Count, s.opts.Clock()
		r.outbox = append(r.outbox, n)
	}
	if version, isWatched := r.watched[b.ID]; isWatched {
		r.watched[b.ID] = version + 1
		n.Audience, n.Events, n.Since, n.Version = domain.ForWatchers, 0, s.opts.Clock(), version+1
		r.outbox = append(r.outbox, n)
	}
	return len(r.outbox) > before
}

// setExpiry records when a closed bundle may be removed. It does nothing for a bundle that is not
// watched.
func (s *Store) setExpiry(r *storedRecipient, b *domain.Bundle) {
	if _, isWatched := r.watched[b.ID]; isWatched && s.opts.Retention > 0 {
		r.expiring[b.ID] = expiringBundle{b, s.opts.Clock().Add(s.opts.Retention)}
	}
}

// Sweep removes the watched bundles of a recipient that were closed longer ago than the retention, and
// adds their notices. The bundles that were closed before a removed one can no longer be replayed.
func (s *Store) Sweep(ctx context.Context, id domain.ActorID) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.recipientOf(id), s.opts.Clock()
	for _, e := range r.expiring {
		if e.at.After(now) {
			continue
		}
		b := e.bundle
		gate := r.ensureGate(b.Group)
		if i := slices.IndexFunc(gate.closed, func(c closedBundle) bool { return c.bundle.ID == b.ID }); i >= 0 {
			gate.closed = gate.closed[i+1:]
		}
		r.outbox = append(r.outbox, domain.Notice{
			Audience: domain.ForWatchersOfRemoval, Recipient: id, Origin: b.Cabinet.Origin, Group: b.Group,
			Bundle: b.ID, Version: r.watched[b.ID] + 1, Since: now,
		})
		delete(r.expiring, b.ID)
		delete(r.bundles, b.ID)
	}
	return nil
}

// WatchBundle implements [repository.BundleWatches].
func (s *Store) WatchBundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("watch bundle: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(recipient)
	if _, err := r.gateOf(id); err != nil {
		return 0, err
	}
	version := r.watched[id]
	r.watched[id] = version
	return version, nil
}

// RequestDequeues implements [repository.DequeueRequests].
func (s *Store) RequestDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("request dequeues: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(recipient)
	if r.dequeueRequests[id] {
		return false, nil
	}
	if len(r.dequeueRequests) >= domain.MaxSubscriptions {
		return false, repository.NewSubscriptionLimitError()
	}
	r.dequeueRequests[id] = true
	return true, nil
}

// WithdrawDequeues implements [repository.DequeueRequests].
func (s *Store) WithdrawDequeues(ctx context.Context, recipient domain.ActorID, id domain.SubscriptionID) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("withdraw dequeues: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.recipientOf(recipient).dequeueRequests, id)
	return nil
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
	r.outbox = slices.DeleteFunc(r.outbox, func(o domain.Notice) bool {
		isRemoval := n.Audience == domain.ForWatchersOfRemoval
		return o.Audience == n.Audience && o.Group == n.Group && o.Number == n.Number && (!isRemoval || o.Bundle == n.Bundle)
	})
	return nil
}

// Waiting implements [repository.Outbox].
func (s *Store) Waiting(ctx context.Context, before time.Time, limit int) ([]domain.ActorID, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("waiting: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var waiting []domain.ActorID
	for id, r := range s.recipients {
		waits := func(n domain.Notice) bool {
			return n.Since.Before(before) || n.Since.After(before.Add(repository.MaxClockAhead))
		}
		if len(waiting) < limit && slices.ContainsFunc(r.outbox, waits) {
			waiting = append(waiting, id)
		}
	}
	return waiting, nil
}
