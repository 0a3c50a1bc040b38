package delivery

import (
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A visit waits until a watch has taken all entries before a number. It ends when this progress
// is stored. If deliveries are outstanding, the shard must also have an entry for the watch, by
// which the next owner finds them.
type visit struct {
	end   int64
	ended func(visitResult) // called once
	began time.Time

	isProving bool // a settlement or a load began after the visit
	isProved  bool // that settlement or load succeeded, so this node has owned the cursor since the visit began
}

type visitResult int

const (
	visitServed    visitResult = iota
	visitMissing               // the cursor is being created
	visitAbandoned             // the service has ended first
)

// visitWatch begins a visit to a watch.
func (e *Engine) visitWatch(entry repository.ShardEntry, v *visit) {
	v.began = time.Now()
	s, _ := e.serveCursor(entry)
	if s == nil || !s.postEvent(func(in *inbox) { in.visits = append(in.visits, v) }) {
		v.ended(visitAbandoned) // the shard has another owner, or the engine ends
	}
}

// patience is how long a visit waits for a watch whose receiver is slow, or may not be called. Then the
// shard gets an entry for the watch, and the visit ends.
const patience = slowCall

// endVisits ends the visits whose entries the cursor has taken and stored.
func (s *service) endVisits() {
	if len(s.visits) == 0 || s.settling || !s.current || !s.dirty.IsZero() {
		return
	}
	standing := s.cursor.ViewStanding()
	isDone := s.underway == 0 && s.cursor.InFlight() == 0 && standing.Outstanding() == 0 // a previous owner may have left open deliveries
	at := s.cursor.Position(0).Number
	rest := s.visits[:0]
	for _, v := range s.visits {
		if s.cursor.IsListed() && v.isProved || isDone && at >= v.end {
			v.ended(visitServed)
			continue
		}
		if s.cursor.IsListed() { // another owner may have unlisted the watch
			s.urgent = true
			s.markDirty()
		}
		rest = append(rest, v)
	}
	clear(s.visits[len(rest):])
	s.visits = rest
}

// beginProofs records that a settlement or a load begins. If it succeeds, it proves that this
// node owns the cursor.
func (s *service) beginProofs() {
	for _, v := range s.visits {
		v.isProving = true
	}
}

// endProofs records that the settlement or load has ended. isProved reports whether it has
// proved the ownership.
func (s *service) endProofs(isProved bool) {
	for _, v := range s.visits {
		v.isProved, v.isProving = v.isProved || isProved && v.isProving, false
	}
}

// abandonVisits ends all visits of s, because s ends. The watch that s served is visited again,
// unless its cursor does not exist.
func (s *service) abandonVisits() {
	result := visitAbandoned
	switch {
	case s.isGone:
		result = visitServed
	case s.isMissing:
		result = visitMissing
	}
	for _, v := range s.visits {
		v.ended(result)
	}
	s.visits = nil
}

// waitForVisit returns how long the first visit will still wait for the receiver, counted from
// at. The result is negative if no visit waits, or the receiver waits for a worker.
func (s *service) waitForVisit(at time.Time) time.Duration {
	if len(s.visits) == 0 || !s.current || s.settling || s.cursor.IsListed() {
		return -1
	}
	if s.underway == 0 && s.hasOffered && !s.engine.dispatcher.isSuspect(s) {
		return -1
	}
	since := s.visits[0].began
	if s.calledAt.After(since) {
		since = s.calledAt
	}
	return max(since.Add(patience).Sub(at), 0)
}

// listSlow adds an entry for the watch to the shard if its visit has waited longer than
// patience.
func (s *service) listSlow() {
	if s.waitForVisit(time.Now()) == 0 {
		s.cursor.List(s.engine.opts.Clock())
		s.urgent = true
		s.markDirty()
	}
}

// leaveWatch removes a watch without outstanding deliveries from memory, unless few watches are
// in memory.
func (s *service) leaveWatch() {
	if !s.isWatch || s.leaving || len(s.visits) > 0 || !s.isWatchIdle() {
		return
	}
	if s.isListed || s.cursor.IsListed() {
		if !s.hasCurrentEnd {
			s.readEnd()
			return
		}
		s.cursor.Unlist(s.followed)
		s.isListed, s.urgent = false, true
		s.isNoted.Store(false)
		s.markDirty()
		return
	}
	if !s.isResident {
		s.isResident = true
		if s.engine.residents.Add(1) <= maxResident {
			return
		}
	} else if s.quiet.IsZero() || time.Since(s.quiet) < s.engine.opts.Idle {
		return
	}
	s.leaving, s.released = true, true
}

type endResult struct{ err error }

// readEnd reads the current end of the stream, before a watch is unlisted. The page of the
// watch may be marked as served up to this end although the watch has not taken all entries,
// because a previous owner relied on the entry in the shard.
func (s *service) readEnd() {
	if s.isReadingEnd || time.Now().Before(s.fetchAfter) {
		return
	}
	s.isReadingEnd = true
	e := s.engine
	e.store.runTask(s.topic, func() {
		r := &endResult{e.readCurrentEnd(e.ctx, s.topic)}
		s.postEvent(func(in *inbox) { in.end = r })
	})
}

func (s *service) finishReadEnd(r *endResult) {
	s.isReadingEnd, s.hasCurrentEnd = false, r.err == nil
	if r.err == nil {
		s.fetchFailures = 0
		return
	}
	s.engine.logWarning(s.engine.ctx, "read the end of a stream", r.err, slog.String("stream", s.topic.stream.String()))
	s.fetchFailures++
	s.fetchAfter = time.Now().Add(s.engine.opts.Backoff(s.fetchFailures))
}

// isWatchIdle reports whether the cursor of a watch has no work.
func (s *service) isWatchIdle() bool {
	if !s.current || s.receiver == nil || s.settling || s.fetching || s.underway > 0 || !s.dirty.IsZero() || s.cursor.InFlight() > 0 {
		return false
	}
	standing := s.cursor.ViewStanding()
	return standing.State == domain.Active && standing.Outstanding() == 0 && !s.isBehind(standing)
}
