package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Bundle implements [repository.Admin].
func (s *Store) Bundle(ctx context.Context, recipient domain.ActorID, id domain.BundleID) (repository.FoundBundle, repository.Run, error) {
	if err := ctx.Err(); err != nil {
		return repository.FoundBundle{}, nil, fmt.Errorf("bundle: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(recipient)
	record, err := r.findRetained(id)
	if err != nil {
		return repository.FoundBundle{}, nil, err
	}
	c := r.cabinets[record.bundle.Cabinet]
	first := slices.IndexFunc(c.events, func(e repository.StoredEvent) bool { return e.Sequence == record.bundle.First })
	run := s.newRange(r, c, s.opts.Groups.All(), c.events[first:first+record.bundle.Count])
	run.waiting = c.events[first:]
	return r.toFoundBundle(record), run, nil
}

// RecordView implements [repository.Admin].
func (s *Store) RecordView(ctx context.Context, actor domain.ActorID, id domain.BundleID, by repository.AdminAction) error {
	return s.executeBundleAction(ctx, actor, "look", by, func(r *storedRecipient) (*domain.Bundle, error) {
		record, err := r.findRetained(id)
		if err != nil {
			return nil, err
		}
		return record.bundle, nil
	})
}

// findRetained returns a retained bundle, open or not.
func (r *storedRecipient) findRetained(id domain.BundleID) (*bundleRecord, error) {
	if record := r.bundles[id]; record != nil {
		return record, nil
	}
	return nil, domain.Errorf(domain.NotFound, "bundle %s is not retained for this actor", id)
}
