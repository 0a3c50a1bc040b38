package ingest

import (
	"context"
	"sync"
)

// places are where sessions are served. There is one more of them than sessions
// that may be served at the same time: whoever looks for the next session needs a
// place for it already, so the last one shows whether anybody waits. As long as it
// is empty, nobody does, and no session has to make way.
type places struct {
	all        int
	mostMoving int // sessions that make way at the same time

	mu     sync.Mutex
	taken  int // by sessions, and by those that look for one
	served int // sessions
	moving int // sessions that make way
	free   chan struct{}
	scarce chan struct{} // closed while every place is that of a session
}

func newPlaces(sessions, mostMoving int) *places {
	return &places{all: sessions + 1, mostMoving: mostMoving, free: make(chan struct{}), scarce: make(chan struct{})}
}

// take waits for a place in which to look for a session.
func (p *places) take(ctx context.Context) error {
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

// giveBack returns a place in which no session was found.
func (p *places) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vacate()
}

// settle makes it the place of a session.
func (p *places) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served++
	if p.served == p.all {
		close(p.scarce)
	}
}

// leave returns the place of a session. moved says that it made way for others.
func (p *places) leave(moved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served == p.all {
		p.scarce = make(chan struct{})
	}
	p.served--
	if moved {
		p.moving--
	}
	p.vacate()
}

func (p *places) vacate() {
	p.taken--
	close(p.free)
	p.free = make(chan struct{})
}

// wanted returns a channel that is closed when every place is taken by a session,
// so that one that has nothing to do should leave.
func (p *places) wanted() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scarce
}

// makeWay reports whether a session that has had its turn is to leave. It is then
// moving. Not all do at the same time: moving costs, and a few are enough to let
// those in that wait.
func (p *places) makeWay() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served < p.all || p.moving == p.mostMoving {
		return false
	}
	p.moving++
	return true
}
