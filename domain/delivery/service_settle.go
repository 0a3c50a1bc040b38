package delivery

import (
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A change that is neither urgent nor the result of a call normally waits: it is settled with the
// next result, after lazySettle, or when maxFiltered entries did not match the filter, whichever
// comes first.
const (
	lazySettle  = 30 * time.Second
	maxFiltered = 1000
)

// maxGather is how long results may wait for the results of other calls. While results are
// stored or wait, their receiver gets fewer calls. So calls that end within the duration of one
// settlement share it.
const maxGather = 10 * time.Millisecond

// gatherUntil returns the time from which results are settled even if other calls are still under
// way.
func (s *service) gatherUntil() time.Time {
	since := s.dirty
	if s.settledAt.After(since) {
		since = s.settledAt
	}
	return since.Add(min(s.settleTook, maxGather))
}

// isToGather reports whether results wait for the results of calls that are under way or about
// to begin.
func (s *service) isToGather() bool {
	return !s.urgent && !s.leaving && (s.underway > 0 || s.hasOffered) && time.Now().Before(s.gatherUntil())
}

type settleResult struct {
	version repository.CursorVersion
	took    time.Duration
	err     error
}

// beginSettlement begins to store the results that have gathered. One settlement is under way
// at a time.
func (s *service) beginSettlement() {
	if s.settling || !s.current || s.released {
		return
	}
	if s.leaving && s.underway == 0 && s.cursor.InFlight() == 0 {
		s.cursor.Release()
		s.releasing, s.urgent = true, true
		s.markDirty()
	}
	if s.dirty.IsZero() {
		return
	}
	hasResults := s.cursor.InFlight() > s.underway
	if !hasResults && !s.urgent && !s.leaving && s.filtered < maxFiltered && time.Since(s.dirty) < lazySettle {
		return
	}
	if s.isGathering = s.isToGather(); s.isGathering {
		return
	}
	s.cursor.Mark(s.engine.opts.Clock())
	settlement, version := s.cursor.Settlement(), s.version
	s.noteDead(&settlement)
	s.settling, s.urgent, s.dirty, s.filtered = true, false, time.Time{}, 0
	s.beginProofs()
	e := s.engine
	e.settles.runTask(s.topic, func() {
		r, began := &settleResult{}, time.Now()
		r.version, r.err = e.Cursors.Settle(e.ctx, s.id, version, settlement)
		r.took = time.Since(began)
		s.postEvent(func(in *inbox) { in.settled = r })
	})
}

func (s *service) finishSettle(r *settleResult) {
	s.settling = false
	s.endProofs(r.err == nil)
	releasing := s.releasing
	s.releasing = false
	if r.err == nil {
		s.cursor.Stored()
		s.version, s.failures = r.version, 0
		s.settleTook, s.settledAt = r.took, time.Now()
		s.released = releasing
		s.noteMayWarn()
		s.engine.settlements.notifySettled(s.id)
		return
	}
	switch domain.KindOf(r.err) {
	case domain.Busy, domain.Unavailable:
		s.cursor.Unstored()
		s.urgent = true
		s.markDirty()
	case domain.NotFound: // the cursor was removed
		s.current, s.leaving, s.released, s.isGone = false, true, true, true
		return
	case domain.Conflict:
		// Another node has loaded the cursor. This node does not load the cursor again until the
		// calls of the other node have ended. Otherwise the nodes would fence each other again and
		// again, and a delivery that they claim in turns would seem to crash them.
		s.current, s.wanted = false, true
		s.leaveToOther()
		return
	default: // the settlement may have been stored
		s.current, s.wanted = false, true
	}
	s.engine.logWarning(s.engine.ctx, "settle a cursor", r.err, slog.String("cursor", s.id.String()))
	s.pauseStore()
}

// leaveToOther delays the next load of the cursor, because another node has loaded it.
func (s *service) leaveToOther() {
	s.released = s.leaving
	wait := s.engine.opts.Timeout
	s.resume = time.Now().Add(wait + time.Duration(s.engine.opts.Random()%uint64(wait))) //nolint:gosec // positive
}
