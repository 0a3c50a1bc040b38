package api

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/domain"
)

// Shares give each actor a share of an admission and no more, so that one whose
// requests take long leaves room for the others.
type shares struct {
	of   *admission
	each int64

	mu     sync.Mutex
	actors map[domain.ActorID]*share // of those who have or want something
}

// A share is what one actor may have.
type share struct {
	room  *semaphore.Weighted
	users int // requests that have some of it or wait for it
}

func newShares(of *admission, each int64) *shares {
	return &shares{of: of, each: each, actors: make(map[domain.ActorID]*share)}
}

// take waits for room in the actor's share and then among all, or fails with Busy.
// Whoever waits for the former takes nothing of the latter.
func (s *shares) take(ctx context.Context, actor domain.ActorID) error {
	waiting, cancel := context.WithTimeout(ctx, s.of.patience)
	defer cancel()
	own := s.join(actor)
	if own.room.Acquire(waiting, 1) != nil {
		s.quit(actor, own)
		return domain.Errorf(domain.Busy, "%s for this actor", s.of.full)
	}
	if err := s.of.take(waiting, 1); err != nil {
		own.room.Release(1)
		s.quit(actor, own)
		return err
	}
	return nil
}

// leave gives back what take has taken.
func (s *shares) leave(actor domain.ActorID) {
	s.of.room.Release(1)
	s.mu.Lock()
	own := s.actors[actor]
	s.mu.Unlock()
	own.room.Release(1)
	s.quit(actor, own)
}

func (s *shares) join(actor domain.ActorID) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.actors[actor]
	if own == nil {
		own = &share{room: semaphore.NewWeighted(s.each)}
		s.actors[actor] = own
	}
	own.users++
	return own
}

func (s *shares) quit(actor domain.ActorID, own *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.actors, actor)
	}
}
