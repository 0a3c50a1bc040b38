package outcome

import (
	"context"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// A cursorReads contains the shared reads of each cursor for which senders wait.
type cursorReads struct {
	read func(context.Context, domain.CursorID) (domain.Standing, error)

	mu  sync.Mutex
	all map[domain.CursorID]*sharedReads
}

// A sharedReads shares the reads of one cursor among all senders that wait for it. At most one read
// is in progress, and at most one further read is queued.
type sharedReads struct {
	id   domain.CursorID
	read func(context.Context, domain.CursorID) (domain.Standing, error)

	users   int // number of waiting senders; guarded by cursorReads.mu
	mu      sync.Mutex
	newest  *cursorRead // last read that has ended
	running *cursorRead
	queued  *cursorRead
}

// A cursorRead is one read of a cursor, together with its result.
type cursorRead struct {
	ended    chan struct{} // closed when standing and err have been set
	standing domain.Standing
	err      error
}

// join returns the shared reads of a cursor. The caller must call leave when its wait ends.
func (s *cursorReads) join(id domain.CursorID) *sharedReads {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[id]
	if l == nil {
		if s.all == nil {
			s.all = make(map[domain.CursorID]*sharedReads)
		}
		l = &sharedReads{id: id, read: s.read}
		s.all[id] = l
	}
	l.users++
	return l
}

func (s *cursorReads) leave(l *sharedReads) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(s.all, l.id)
	}
}

// nextRead returns a read that is newer than seen. If isFresh is set, the read begins after
// nextRead was called. If ctx ends, nextRead returns a read with the error of ctx.
func (l *sharedReads) nextRead(ctx context.Context, seen *cursorRead, isFresh bool) *cursorRead {
	l.mu.Lock()
	if !isFresh && l.newest != nil && l.newest != seen {
		defer l.mu.Unlock()
		return l.newest
	}
	wanted, before := l.queued, l.running
	isMine := wanted == nil
	if isMine {
		wanted = &cursorRead{ended: make(chan struct{})}
		l.queued = wanted
	}
	l.mu.Unlock()
	if isMine {
		l.runRead(ctx, wanted, before)
		return wanted
	}
	select {
	case <-wanted.ended:
		return wanted
	case <-ctx.Done():
		return &cursorRead{err: context.Cause(ctx)}
	}
}

// runRead waits until the previous read has ended, reads the cursor, and sets the result in mine.
func (l *sharedReads) runRead(ctx context.Context, mine, before *cursorRead) {
	if before != nil {
		select {
		case <-before.ended:
		case <-ctx.Done(): // the read below fails immediately, and each other caller that shares the read begins a new one
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
