package outcome

import (
	"context"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// looks are the cursors that senders wait for.
type looks struct {
	read func(context.Context, domain.CursorID) (domain.Standing, error)

	mu  sync.Mutex
	all map[domain.CursorID]*sharedLooks
}

// sharedLooks are the reads of a cursor for all senders that wait for it: one is under way at a
// time, and one more waits for its end.
type sharedLooks struct {
	id   domain.CursorID
	read func(context.Context, domain.CursorID) (domain.Standing, error)

	users   int // guarded by looks.mu
	mu      sync.Mutex
	newest  *look // that has ended
	running *look
	queued  *look
}

// A look is a read of a cursor.
type look struct {
	ended    chan struct{} // closed when the rest is set
	standing domain.Standing
	err      error
}

// join returns the looks of a cursor. The caller leaves them.
func (s *looks) join(id domain.CursorID) *sharedLooks {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[id]
	if l == nil {
		if s.all == nil {
			s.all = make(map[domain.CursorID]*sharedLooks)
		}
		l = &sharedLooks{id: id, read: s.read}
		s.all[id] = l
	}
	l.users++
	return l
}

func (s *looks) leave(l *sharedLooks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(s.all, l.id)
	}
}

// next returns a look that has begun after the call or, unless isFresh, any that is not the one that
// the caller has seen. It fails, as a look, when ctx ends.
func (l *sharedLooks) next(ctx context.Context, seen *look, isFresh bool) *look {
	l.mu.Lock()
	if !isFresh && l.newest != nil && l.newest != seen {
		defer l.mu.Unlock()
		return l.newest
	}
	wanted, before := l.queued, l.running
	isMine := wanted == nil
	if isMine {
		wanted = &look{ended: make(chan struct{})}
		l.queued = wanted
	}
	l.mu.Unlock()
	if isMine {
		l.take(ctx, wanted, before)
		return wanted
	}
	select {
	case <-wanted.ended:
		return wanted
	case <-ctx.Done():
		return &look{err: context.Cause(ctx)}
	}
}

// take makes a look once the one before it has ended.
func (l *sharedLooks) take(ctx context.Context, mine, before *look) {
	if before != nil {
		select {
		case <-before.ended:
		case <-ctx.Done(): // the read fails at once, for all who share it, and they look again
		}
	}
	l.mu.Lock()
	l.running, l.queued = mine, nil
	l.mu.Unlock()
	mine.standing, mine.err = l.read(ctx, l.id)
	l.mu.Lock()
	l.newest = mine
	if l.running == mine {
		l.running = nil
	}
	l.mu.Unlock()
	close(mine.ended)
}
