package delivery

import (
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// WatchCursor returns a channel that receives after settlements of a cursor that this process has
// stored. One value may stand for several. The caller calls stop when it does not need it any more.
func (e *Engine) WatchCursor(id domain.CursorID) (settled <-chan struct{}, stop func()) {
	return e.watches.add(id)
}

// watches are the channels of those that wait for settlements.
type watches struct {
	mu   sync.Mutex
	byID map[domain.CursorID]map[chan struct{}]struct{}
}

func (w *watches) add(id domain.CursorID) (settled <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[domain.CursorID]map[chan struct{}]struct{})
	}
	if w.byID[id] == nil {
		w.byID[id] = make(map[chan struct{}]struct{})
	}
	c := make(chan struct{}, 1)
	w.byID[id][c] = struct{}{}
	return c, func() { w.remove(id, c) }
}

func (w *watches) remove(id domain.CursorID, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byID[id], c)
	if len(w.byID[id]) == 0 {
		delete(w.byID, id)
	}
}

func (w *watches) notify(id domain.CursorID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.byID[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
