package receivers

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// slowAnswer is how long the slow receiver takes for a call, so that calls are under way at any time.
const slowAnswer = 20 * time.Millisecond

// A slowReceiver counts the calls for each event. It answers late.
type slowReceiver struct {
	mu    sync.Mutex
	calls map[string]int // by event
	last  time.Time      // of the first calls for an event
	more  chan struct{}  // holds one after a call
}

// SlowURL returns where the receiver is called that answers late, and counts all calls for each event.
func (s *Server) SlowURL() string { return s.url + "/slow" }

func (r *slowReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var n notice
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil || json.Unmarshal(body, &n) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	timer := time.NewTimer(slowAnswer)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.Context().Done():
	}
	r.noteEvent(n.Event.ID)
	w.WriteHeader(http.StatusNoContent)
}

func (r *slowReceiver) noteEvent(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[event]++; r.calls[event] == 1 {
		r.last = time.Now()
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// AwaitSlow waits until the slow receiver was called for all events. It returns when the last of them
// came for the first time, and how many calls were repeated.
func (s *Server) AwaitSlow(ctx context.Context, events []string) (last time.Time, repeated int, err error) {
	r := &s.slow
	for {
		r.mu.Lock()
		missing := 0
		for _, e := range events {
			if r.calls[e] == 0 {
				missing++
			}
		}
		last, repeated = r.last, 0
		for _, n := range r.calls {
			repeated += n - 1
		}
		r.mu.Unlock()
		if missing == 0 {
			return last, repeated, nil
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			return last, repeated, ctx.Err()
		}
	}
}
