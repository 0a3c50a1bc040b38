package delivery

import (
	"context"
	"log/slog"

	"github.com/messagehub/messagehub/domain"
)

// A replayRequest is a request that has not been carried out yet. If the request names a delivery
// that is a dead letter, dead is that dead letter.
type replayRequest struct {
	domain.ReplayRequest
	dead *domain.Retry
}

// loadReplays reads the requests that have not been carried out yet. It reads the dead letters after
// the cursor was loaded, because from then on only this owner changes them.
func (e *Engine) loadReplays(ctx context.Context, id domain.CursorID, cursor *domain.Cursor) ([]replayRequest, error) {
	all, err := e.Shards.Replays(ctx, id)
	if domain.KindOf(err) == domain.NotFound {
		return nil, nil // the request was removed by hand
	}
	if err != nil {
		return nil, err
	}
	var requests []replayRequest
	for _, r := range all.After(cursor.LastReplayRequest()) {
		one := replayRequest{ReplayRequest: r}
		if r.Delivery != nil {
			found, err := e.Cursors.Retry(ctx, id, r.Delivery.EntryID)
			if err != nil && domain.KindOf(err) != domain.NotFound {
				return nil, err
			}
			if err == nil && found.Dead {
				one.dead = &found
			}
		}
		requests = append(requests, one)
	}
	return requests, nil
}

// keepRequests sets the requests of the service to the requests that were read.
func (s *service) keepRequests(requests []replayRequest) {
	s.requests = requests
	if n := len(requests); n > 0 {
		s.requested.Store(int64(requests[n-1].Number))
		return
	}
	s.requested.Store(int64(s.cursor.LastReplayRequest()))
}

// followReplays carries out requests, as long as their deliveries fit into a settlement. It
// returns false if a request to fetch does not fit: then no call may begin before the next
// settlement is stored. Otherwise the consumer would have to wait while calls fail.
func (s *service) followReplays() bool {
	if s.retaking || s.leaving {
		return true
	}
	for len(s.requests) > 0 {
		r := &s.requests[0]
		if !s.cursor.ApplyReplayRequest(&r.ReplayRequest, r.dead, s.engine.opts.Clock()) {
			return !r.IsFetch()
		}
		s.engine.opts.Logger.LogAttrs(s.engine.ctx, slog.LevelDebug, "a request to replay was carried out",
			slog.String("cursor", s.id.String()), slog.String("request", r.ID))
		s.requests = s.requests[1:]
		s.urgent = true
		s.markDirty()
	}
	return true
}

// noteDead records the dead letters of a settlement for the requests and the replay that are in
// memory, because these may have been read before the settlement was stored.
func (s *service) noteDead(t *domain.Settlement) {
	for _, list := range [][]domain.Retry{t.Create, t.Replace, t.Put} {
		for i := range list {
			if !list[i].Dead {
				continue
			}
			for j := range s.requests {
				if d := s.requests[j].Delivery; d != nil && d.EntryID == list[i].EntryID {
					s.requests[j].dead = &list[i]
				}
			}
			if s.walk != nil {
				s.walk.died[list[i].EntryID] = &list[i]
			}
		}
	}
}
