package receivers

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// slowAnswer is the time that the slow receiver takes for a call, so that some calls are always
// active.
const slowAnswer = 20 * time.Millisecond

// A slowReceiver counts the calls for each event, and responds late.
type slowReceiver struct {
	mu    sync.Mutex
	calls map[string]int // number of calls by event
	last  time.Time      // time of the latest first call for an event
	more  chan struct{}  // receives an element after each call
}

// SlowURL returns the URL of the receiver that responds late and counts all calls for each event.
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

// AwaitSlow waits until the slow receiver was called for all events. It returns the time of the
// last first call, and the number of repeated calls.
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
