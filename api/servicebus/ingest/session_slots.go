package ingest

import (
	"context"
	"sync"
)

// sessionSlots limits the number of sessions that are served at the same time.
// It has one slot more than that limit, because the search for the next session
// takes a slot, too. So the last slot shows whether a session waits: while it
// is free, no session waits and no session has to make way.
type sessionSlots struct {
	all       int
	maxMoving int // maximum of sessions that make way at the same time

	mu     sync.Mutex
	taken  int // slots of sessions and of searches
	served int // sessions that are served
	moving int // sessions that are making way
	free   chan struct{}
	scarce chan struct{} // closed while every slot is taken by a session
}

func newSessionSlots(sessions, maxMoving int) *sessionSlots {
	return &sessionSlots{all: sessions + 1, maxMoving: maxMoving, free: make(chan struct{}), scarce: make(chan struct{})}
}

// takeSlot waits for a slot for the search for a session.
func (p *sessionSlots) takeSlot(ctx context.Context) error {
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

// giveBack returns the slot of a search that found no session.
func (p *sessionSlots) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeSlot()
}

// occupySlot turns the slot of a search into the slot of a session.
func (p *sessionSlots) occupySlot() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served++
	if p.served == p.all {
		close(p.scarce)
	}
}

// returnSlot returns the slot of a session. moved says whether the session made
// way for others.
func (p *sessionSlots) returnSlot(moved bool) {
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

// Wanted returns a channel that is closed when every slot is taken by a session. Then an idle
// session should end.
func (p *sessionSlots) Wanted() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scarce
}

// MakeWay reports whether a session that has had its turn must end. It is then
// moving. Not all sessions move at the same time, because moving is expensive,
// and a few are enough to let the waiting ones in.
func (p *sessionSlots) MakeWay() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served < p.all || p.moving == p.maxMoving {
		return false
	}
	p.moving++
	return true
}
