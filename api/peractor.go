package api

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/domain"
)

// A perActorLimiter limits each actor to a share of a limiter, so that an actor with slow requests
// leaves capacity for other actors.
type perActorLimiter struct {
	all   *limiter
	share int64

	mu     sync.Mutex
	actors map[domain.ActorID]*actorShare // actors with requests that hold capacity or wait for it
}

// An actorShare is the share of one actor.
type actorShare struct {
	room  *semaphore.Weighted
	users int // number of requests that hold capacity in the share or wait for it
}

func newPerActorLimiter(all *limiter, share int64) *perActorLimiter {
	return &perActorLimiter{all: all, share: share, actors: make(map[domain.ActorID]*actorShare)}
}

// acquire waits for a unit of the actor's share, and then for a unit of the total. It fails with
// Busy after the limiter's timeout. While it waits for the share, it holds nothing of the total.
func (l *perActorLimiter) acquire(ctx context.Context, actor domain.ActorID) error {
	ctx, cancel := context.WithTimeout(ctx, l.all.timeout)
	defer cancel()
	return l.wait(ctx, actor)
}

// wait is like acquire, without a timeout.
func (l *perActorLimiter) wait(ctx context.Context, actor domain.ActorID) error {
	own := l.joinShare(actor)
	if own.room.Acquire(ctx, 1) != nil {
		l.leaveShare(actor, own)
		return domain.Errorf(domain.Busy, "%s for this actor", l.all.full)
	}
	if err := l.all.wait(ctx, 1); err != nil {
		own.room.Release(1)
		l.leaveShare(actor, own)
		return err
	}
	return nil
}

// release releases the units that acquire or wait has acquired.
func (l *perActorLimiter) release(actor domain.ActorID) {
	l.all.room.Release(1)
	l.mu.Lock()
	own := l.actors[actor]
	l.mu.Unlock()
	own.room.Release(1)
	l.leaveShare(actor, own)
}

func (l *perActorLimiter) joinShare(actor domain.ActorID) *actorShare {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.actors[actor]
	if own == nil {
		own = &actorShare{room: semaphore.NewWeighted(l.share)}
		l.actors[actor] = own
	}
	own.users++
	return own
}

func (l *perActorLimiter) leaveShare(actor domain.ActorID, own *actorShare) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.actors, actor)
	}
}
