package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// backlogOf returns the number of events and the age of the oldest event. events are in order of age.
func backlogOf(events []repository.StoredEvent) domain.Backlog {
	if len(events) == 0 {
		return domain.Backlog{}
	}
	return domain.Backlog{Events: int64(len(events)), Oldest: events[0].Saved}
}

// groupsBacklog returns the backlog of groups.
func (r *storedRecipient) groupsBacklog(groups []domain.Group) domain.Backlog {
	return r.backlogWithout(nil, groups)
}

// backlogWithout returns the backlog of groups, excluding one cabinet.
func (r *storedRecipient) backlogWithout(without *storedCabinet, groups []domain.Group) domain.Backlog {
	var sum domain.Backlog
	for _, c := range r.cabinets {
		if c != without && slices.Contains(groups, c.group) {
			sum = sum.Plus(backlogOf(c.waitingEvents()))
		}
	}
	return sum
}

// Queues implements [repository.DataAvailable].
func (s *Store) Queues(ctx context.Context, id domain.ActorID) ([]repository.Queue, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("queues: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(id)
	var queues []repository.Queue
	for _, group := range s.opts.Groups.All() {
		q := repository.Queue{Group: group, Waiting: r.groupsBacklog([]domain.Group{group})}
		if open := r.ensureGate(group).open; open != nil {
			q.Open = cloneBundle(open)
		}
		queues = append(queues, q)
	}
	return queues, nil
}

// Watermark implements [repository.DataAvailable].
func (s *Store) Watermark(ctx context.Context, id domain.ActorID) (domain.Sequence, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("watermark: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recipientOf(id).last, nil
}
