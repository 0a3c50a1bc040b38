package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// fetch returns a bundle and the store slot that it was read with, which the caller
// releases. If nothing is there, it waits up to wait for something to come. A request
// that waits takes nothing from those that fetch; when the server drains, it waits no
// longer.
func (s *Server) fetch(ctx context.Context, req hub.PeekRequest, wait time.Duration) (peeked *hub.Peeked, slot *storeSlot, err error) {
	if wait == 0 {
		return s.fetchNow(ctx, req)
	}
	listener := s.opts.Hub.Listen(req.Actor, req.Groups)
	defer listener.Close()
	paceOf(ctx).allow(wait)
	until, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)() //nolint:contextcheck // it is the server's
	for {
		peeked, slot, err = s.fetchNow(ctx, req)
		if !errors.Is(err, domain.ErrNoData) {
			return peeked, slot, err
		}
		if err := listener.TakePlace(!errors.Is(err, hub.ErrNoMailbox)); err != nil {
			return nil, nil, err
		}
		s.metrics.waiting.Inc()
		over := listener.Wait(until)
		s.metrics.waiting.Dec()
		if over == nil {
			continue
		}
		if gone := ctx.Err(); gone != nil {
			return nil, nil, gone
		}
		return nil, nil, domain.ErrNoData
	}
}

// fetchNow returns what is there.
func (s *Server) fetchNow(ctx context.Context, req hub.PeekRequest) (*hub.Peeked, *storeSlot, error) {
	slot, err := s.newStoreSlot(ctx, req.Actor)
	if err != nil {
		return nil, nil, err
	}
	req.By, req.Pause = s.domainHasUntil(), slot.pause
	peeked, err := s.opts.Hub.Peek(ctx, req)
	if err != nil {
		slot.release()
		return nil, nil, err
	}
	return peeked, slot, nil
}

// domainHasUntil is when a domain has to have made the content of a bundle for it
// to reach the actor before the deadline.
func (s *Server) domainHasUntil() time.Time {
	return time.Now().Add(s.opts.Deadline - s.opts.Deadline/30)
}

// parseWait accepts a duration such as 20s or 1m30s, or a number of seconds.
func parseWait(text string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if seconds, serr := strconv.ParseUint(text, 10, 16); serr == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 || d > most {
		return 0, refuse(invalid, "wait: want a time such as 20s, or a number of seconds, from 0 to %v, got %q", most, clip(text))
	}
	return d, nil
}
