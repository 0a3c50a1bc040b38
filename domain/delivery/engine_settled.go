package delivery

import (
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// settlements notifies callers of the settlements that this node stores.
type settlements struct {
	mu      sync.Mutex
	awaited map[domain.CursorID]chan struct{} // closed by the next settlement
}

// Settled returns a channel that is closed when this node has stored the next settlement of a
// cursor. Another node may serve the cursor, so the caller also has to read the store from time
// to time.
func (e *Engine) Settled(id domain.CursorID) <-chan struct{} {
	s := &e.settlements
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited[id] == nil {
		if s.awaited == nil {
			s.awaited = make(map[domain.CursorID]chan struct{})
		}
		s.awaited[id] = make(chan struct{})
	}
	return s.awaited[id]
}

// notifySettled closes the channel of a cursor, if a caller of Settled waits for it.
func (s *settlements) notifySettled(id domain.CursorID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if settled := s.awaited[id]; settled != nil {
		close(settled)
		delete(s.awaited, id)
	}
}
