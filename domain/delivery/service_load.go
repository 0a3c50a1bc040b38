package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

type loadResult struct {
	receiver *Receiver // nil: the receiver was deleted
	cursor   *domain.Cursor
	version  repository.CursorVersion
	requests []replayRequest
	hasRead  bool  // requests were read from the store
	isReread bool  // the load had to read the receiver again
	followed int64 // see service
	err      error
}

// loadCursor begins to load the cursor, if this was requested or a retry is due. It waits until
// a settlement that is under way has ended.
func (s *service) loadCursor() {
	now := s.engine.opts.Clock()
	isDue := !s.due.IsZero() && (!s.due.After(now) || now.Round(0).Before(s.forgot)) // also due if the clock was set back after the cursor was removed from memory
	isNeeded := s.wanted || isDue || s.cursor != nil
	if s.loading || s.settling || !isNeeded || s.leaving && s.cursor == nil || !s.engine.mayLoad(s.shard) {
		return
	}
	s.loading, s.wanted = true, false
	s.beginProofs()
	receiver := s.receiver
	isReread := s.changed
	if isReread {
		receiver, s.changed = nil, false
	}
	followed := s.followed
	if receiver == nil {
		followed = s.noted.Load()
	}
	s.engine.store.runTask(s.topic, func() {
		// A stale read may lack the noted change, and no other signal would follow.
		r := s.engine.loadCursor(s.engine.ctx, s.id, receiver, followed != 0, s.topic)
		if r.err == nil && !s.isWatch && (receiver == nil || int64(r.cursor.LastReplayRequest()) < s.requested.Load()) {
			r.requests, r.err = s.engine.loadReplays(s.engine.ctx, s.id, r.cursor)
			r.hasRead = true
		}
		r.isReread, r.followed = isReread, followed
		s.postEvent(func(in *inbox) { in.loaded = r })
	})
}

// loadCursor loads a cursor, and its receiver if the parameter receiver is nil.
func (e *Engine) loadCursor(ctx context.Context, id domain.CursorID, receiver *Receiver, isCurrent bool, t *topic) *loadResult {
	r := &loadResult{receiver: receiver}
	if receiver == nil {
		found, err := e.Receivers.Receiver(ctx, id, isCurrent)
		switch {
		case err == nil:
			if found.Concurrency == 0 {
				found.Concurrency = e.opts.Concurrency
			}
			r.receiver = &found
		case domain.KindOf(err) != domain.NotFound:
			r.err = err
			return r
		}
	}
	owner := domain.Owner{Incarnation: e.opts.Incarnation, Limit: 1}
	if r.receiver != nil {
		owner.Limit, owner.Policy = min(max(r.receiver.Concurrency, 1), domain.MaxConcurrency), r.receiver.Policy
		owner.KeepsMarks, owner.IsOrdered = r.receiver.KeepsMarks, r.receiver.IsOrdered
		if owner.IsOrdered {
			owner.Limit = 1
		}
	}
	if r.cursor, r.version, r.err = e.Cursors.Load(ctx, id, owner, e.opts.Clock); r.err != nil {
		return r
	}
	standing := r.cursor.ViewStanding()
	if _, looked := t.knownEnds(); !looked || standing.Caution != nil {
		// Careful serving ends when the stream has no entries that the previous owner may have
		// called with. So the end of the stream must not be older than the cursor.
		r.err = e.readEnd(ctx, t)
	}
	return r
}

func (s *service) finishLoad(r *loadResult) {
	s.loading = false
	s.endProofs(r.err == nil)
	if r.err == nil {
		s.created = false
	}
	switch {
	case domain.KindOf(r.err) == domain.NotFound: // the cursor was never created, or was removed
		s.leaving, s.released = true, true
		s.isGone, s.isMissing = r.receiver == nil, r.receiver != nil
		return
	case r.err != nil:
		s.engine.logWarning(s.engine.ctx, "load a cursor", r.err, slog.String("cursor", s.id.String()))
		s.wanted, s.changed = true, s.changed || r.isReread
		s.pauseStore()
		return
	}
	if s.cursor != nil {
		r.cursor.TakeOverCalls(s.cursor)
	}
	s.cursor, s.version, s.receiver, s.followed = r.cursor, r.version, r.receiver, r.followed
	s.current = !s.changed // the receiver may have changed after it was read
	standing := s.cursor.ViewStanding()
	s.released, s.due, s.urgent, s.hasCurrentEnd = false, time.Time{}, false, false
	s.cancelled = standing.State == domain.Closed && standing.Outstanding() == 0
	s.careful = standing.Caution != nil
	s.engine.dispatcher.setSuspect(s, standing.Failures > 0)
	s.walk = nil
	s.noteMayWarn()
	s.followRate()
	if r.hasRead {
		s.keepRequests(r.requests)
	}
	if s.cursor.InFlight() > 0 {
		s.retaking = true
		s.markDirty()
	}
	if r.receiver != nil && s.cursor.ApplyPause(r.receiver.IsPaused, r.receiver.Resumed) {
		s.urgent = true
		s.markDirty()
	}
}

// retakeCalled is needed after the cursor was loaded again, in a state from before this node took
// entries that it has already called. It takes these entries again. Until then, the results of
// these calls cannot be settled.
func (s *service) retakeCalled() {
	end, _ := s.topic.knownEnds()
	for p := 0; p < domain.Priorities && s.retaking; p++ {
		for {
			at := s.cursor.Position(p)
			if at.Number >= end[p] || !s.cursor.CanTake(p, s.engine.opts.Clock()) {
				break
			}
			e := s.findEntry(at)
			if e == nil {
				s.fetchEntries(at, true)
				return
			}
			s.takeEntry(e, s.passesFilter(e))
		}
	}
	s.retaking = false
}
