package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// fetch returns a bundle, and the store slot with which it was read. The caller must close the
// slot. If no data is available, fetch waits up to wait, or until the server drains. A waiting
// request holds no store slot. If fetch returns errParked, the request has no response yet, and the
// caller must not use w.
func (s *Server) fetch(w http.ResponseWriter, r *http.Request, req hub.PeekRequest, wait time.Duration) (peeked *hub.PeekedBundle, slot *storeSlot, err error) {
	ctx := r.Context()
	if wait == 0 {
		return s.fetchNow(ctx, req)
	}
	rec := recordOf(ctx)
	var listener *hub.Listener
	var until time.Time
	if rec.poll != nil {
		listener, until = rec.poll.listener, rec.poll.until
	} else {
		listener, until = s.opts.Hub.Listen(req.Actor, req.Groups), time.Now().Add(wait)
	}
	defer func() {
		if !rec.isParked {
			listener.Close()
		}
	}()
	if rec.poll != nil && !rec.poll.hasNews {
		return nil, nil, domain.ErrNoData // the request was resumed at the end of its wait
	}
	paceOf(ctx).extendDeadline(max(0, time.Until(until)))
	for {
		peeked, slot, err = s.fetchNow(ctx, req)
		if !errors.Is(err, domain.ErrNoData) {
			return peeked, slot, err
		}
		if err := listener.TakePlace(!errors.Is(err, hub.ErrNoMailbox)); err != nil {
			return nil, nil, &problemError{problem: busy, detail: "This Peek cannot wait for data: " + err.Error() + ".", cause: err}
		}
		if s.park(w, r, listener, until, routeOf(r)) {
			return nil, nil, errParked
		}
		if err := s.waitInHandler(ctx, listener, until); err != nil {
			return nil, nil, err
		}
	}
}

// waitInHandler returns nil when there may be data.
func (s *Server) waitInHandler(ctx context.Context, listener *hub.Listener, until time.Time) error {
	s.metrics.waiting.Inc()
	defer s.metrics.waiting.Dec()
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)() //nolint:contextcheck // it is the server's
	if listener.Wait(waiting) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return domain.ErrNoData
}

// fetchNow returns a bundle without waiting.
func (s *Server) fetchNow(ctx context.Context, req hub.PeekRequest) (*hub.PeekedBundle, *storeSlot, error) {
	timer := startPeekTimer(s.opts.Clock)
	defer func() { s.metrics.peekDuration.Observe(timer.stop().Seconds()) }()
	slot, err := s.newStoreSlot(ctx, req.Actor)
	if err != nil {
		return nil, nil, err
	}
	req.By, req.Pause, req.Reserve = s.contentDeadline(), timer.excludePause(slot.pause), slot.reserveEvents
	peeked, err := s.opts.Hub.Peek(ctx, req)
	if err != nil {
		slot.close()
		return nil, nil, err
	}
	return peeked, slot, nil
}

// contentDeadline returns the time by which the hub must have copied the content of a bundle from
// its domain. The content can then reach the actor before the deadline of the request. The domain
// must reply 2 s earlier; see package hub.
func (s *Server) contentDeadline() time.Time {
	return time.Now().Add(s.opts.Deadline - s.opts.Deadline/30)
}

// parseWait parses a duration such as 20s or 1m30s, or a number of seconds.
func parseWait(text string, limit time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if seconds, serr := strconv.ParseUint(text, 10, 16); serr == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 || d > limit {
		return 0, refuse(invalid, "wait: want a time such as 20s, or a number of seconds, from 0 to %v, got %q", limit, domain.Shorten(text))
	}
	return d, nil
}
