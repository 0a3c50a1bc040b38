package delivery

import (
	"log/slog"

	"github.com/messagehub/messagehub/domain"
)

type retireResult struct{ err error }

// cancelDeliveries cancels the deliveries of a receiver that was deleted, a limited number with
// each settlement. After the last one, it retires the cursor.
func (s *service) cancelDeliveries() {
	switch {
	case s.settling:
	case !s.cancelled:
		s.cancelled = !s.cursor.Cancel(domain.MaxConcurrency)
		s.urgent = true
		s.markDirty()
	case s.dirty.IsZero() && s.underway == 0:
		s.retireCursor()
	}
}

// retireCursor begins to remove the cursor. After the removal, no node can load the cursor.
func (s *service) retireCursor() {
	s.settling = true
	e, version := s.engine, s.version
	e.spawn(func() {
		r := &retireResult{e.Cursors.Retire(e.ctx, s.id, version)}
		s.postEvent(func(in *inbox) { in.retired = r })
	})
}

func (s *service) finishRetire(r *retireResult) {
	s.settling = false
	switch domain.KindOf(r.err) {
	case domain.NotFound:
	case domain.Conflict: // another node has loaded the cursor
		s.current, s.wanted = false, true
		s.leaveToOther()
		return
	default:
		if r.err != nil {
			s.engine.logWarning(s.engine.ctx, "retire a cursor", r.err, slog.String("cursor", s.id.String()))
			s.pauseStore()
			return
		}
	}
	s.current, s.leaving, s.released, s.isGone = false, true, true, true
}
