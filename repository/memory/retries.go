package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// DeadLetters implements [repository.Cursors].
func (s *Cursors) DeadLetters(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error) {
	return s.listRetries(ctx, id, after, limit, func(c *storedCursor) (all []domain.Retry) {
		for _, d := range c.dead {
			all = append(all, d.Retry)
		}
		return all
	})
}

// Retries implements [repository.Cursors].
func (s *Cursors) Retries(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error) {
	return s.listRetries(ctx, id, after, limit, func(c *storedCursor) (all []domain.Retry) {
		for _, r := range c.retries {
			all = append(all, r)
		}
		return all
	})
}

// listRetries returns up to limit retries after an entry, in order. read returns all retries of a
// cursor.
func (s *Cursors) listRetries(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int, read func(*storedCursor) []domain.Retry) ([]domain.Retry, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read the retries of a cursor: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findCursor(id)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(read(c), func(r domain.Retry) bool { return domain.CompareEntries(r.EntryID, after) <= 0 })
	slices.SortFunc(all, func(a, b domain.Retry) int { return domain.CompareEntries(a.EntryID, b.EntryID) })
	all = all[:min(limit, len(all))]
	for i := range all {
		all[i].History = slices.Clone(all[i].History)
	}
	return all, nil
}

// Retry implements [repository.Cursors].
func (s *Cursors) Retry(ctx context.Context, id domain.CursorID, entry domain.EntryID) (domain.Retry, error) {
	if err := ctx.Err(); err != nil {
		return domain.Retry{}, fmt.Errorf("read a retry: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.findCursor(id)
	if err != nil {
		return domain.Retry{}, err
	}
	r, found := c.retries[entry]
	if !found {
		var dead deadLetter
		dead, found = c.dead[entry]
		r = dead.Retry
	}
	if !found {
		return domain.Retry{}, domain.Errorf(domain.NotFound, "cursor %s has no retry %s", id, entry)
	}
	r.History = slices.Clone(r.History)
	return r, nil
}
