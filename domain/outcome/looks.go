package outcome

import (
	"context"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// looks has the shared reads of the cursors that senders wait for.
type looks struct {
	read func(context.Context, domain.CursorID) (domain.Standing, error)

	mu  sync.Mutex
	all map[domain.CursorID]*sharedLooks
}

// sharedLooks are the reads of a cursor for all senders that wait for it. One read is under way
// at a time, and one more waits for its end.
type sharedLooks struct {
	id   domain.CursorID
	read func(context.Context, domain.CursorID) (domain.Standing, error)

	users   int // guarded by looks.mu
	mu      sync.Mutex
	newest  *cursorLook // the newest look that has ended
	running *cursorLook
	queued  *cursorLook
}

// A cursorLook is the result of a read of a cursor.
type cursorLook struct {
	ended    chan struct{} // closed when the other fields are set
	standing domain.Standing
	err      error
}

// joinLooks returns the shared looks of a cursor. The caller calls leaveLooks.
func (s *looks) joinLooks(id domain.CursorID) *sharedLooks {
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

func (s *looks) leaveLooks(l *sharedLooks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(s.all, l.id)
	}
}

// nextLook returns a look that the caller has not seen. With isFresh, the look has begun after
// the call. When ctx ends, it returns a look with the error of ctx.
func (l *sharedLooks) nextLook(ctx context.Context, seen *cursorLook, isFresh bool) *cursorLook {
	l.mu.Lock()
	if !isFresh && l.newest != nil && l.newest != seen {
		defer l.mu.Unlock()
		return l.newest
	}
	wanted, before := l.queued, l.running
	isMine := wanted == nil
	if isMine {
		wanted = &cursorLook{ended: make(chan struct{})}
		l.queued = wanted
	}
	l.mu.Unlock()
	if isMine {
		l.takeLook(ctx, wanted, before)
		return wanted
	}
	select {
	case <-wanted.ended:
		return wanted
	case <-ctx.Done():
		return &cursorLook{err: context.Cause(ctx)}
	}
}

// takeLook waits for the end of the look before, and then reads the cursor for mine.
func (l *sharedLooks) takeLook(ctx context.Context, mine, before *cursorLook) {
	if before != nil {
		select {
		case <-before.ended:
		case <-ctx.Done(): // the read fails immediately for all callers that share it, and they begin another one
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
