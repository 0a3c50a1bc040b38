package ingest

import (
	"context"
	"sync"
)

// sessionSlots limits the number of sessions that are served concurrently. A search for the next
// session also uses a slot, so there is one slot more than the limit. While this additional slot is
// free, no session waits, so no session must yield.
type sessionSlots struct {
	all       int
	maxMoving int // maximum number of sessions that yield at the same time

	mu     sync.Mutex
	taken  int // slots in use, by sessions and by searches
	served int // slots in use by sessions
	moving int // sessions that are about to end because they yield their slots
	free   chan struct{}
	scarce chan struct{} // closed while sessions use all slots
}

func newSessionSlots(sessions, maxMoving int) *sessionSlots {
	return &sessionSlots{all: sessions + 1, maxMoving: maxMoving, free: make(chan struct{}), scarce: make(chan struct{})}
}

// takeSearchSlot waits for a free slot, and takes it for a search for the next session.
func (p *sessionSlots) takeSearchSlot(ctx context.Context) error {
	for ctx.Err() == nil {
		p.mu.Lock()
		if p.taken < p.all {
			p.taken++
			p.mu.Unlock()
			return nil
		}
		free := p.free
		p.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// returnSearchSlot returns the slot of a search that found no session.
func (p *sessionSlots) returnSearchSlot() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeSlot()
}

// occupySlot converts the slot of a search into the slot of the session that was found.
func (p *sessionSlots) occupySlot() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served++
	if p.served == p.all {
		close(p.scarce)
	}
}

// returnSessionSlot returns the slot of a session. moved is the last result of MakeWay for the
// session.
func (p *sessionSlots) returnSessionSlot(moved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served == p.all {
		p.scarce = make(chan struct{})
	}
	p.served--
	if moved {
		p.moving--
	}
	p.freeSlot()
}

func (p *sessionSlots) freeSlot() {
	p.taken--
	close(p.free)
	p.free = make(chan struct{})
}

// Wanted returns a channel that is closed while sessions use all slots. An idle session should end
// when the channel is closed.
func (p *sessionSlots) Wanted() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scarce
}

// MakeWay reports whether a session that has used up its time or messages must end. If so, the
// session counts as moving (about to end) until its slot is returned. The number of moving sessions
// is limited, because ending a session and accepting another one is expensive, and a few free slots
// are enough for the waiting sessions.
func (p *sessionSlots) MakeWay() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served < p.all || p.moving == p.maxMoving {
		return false
	}
	p.moving++
	return true
}
