package delivery

import (
	"context"
	"log/slog"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A replayWalk has the entries that a service has read for the replay of a range.
type replayWalk struct {
	id      string // id of the replay
	limiter *rate.Limiter
	matches func(*repository.Entry) bool // filter of the replay; nil: every entry matches
	after   time.Time                    // no entry is read or delivered before this time, on the monotonic clock

	reading  bool
	failures int              // consecutive failures of reads
	steps    []walkStep       // sorted by position
	next     *domain.Position // where reads continue after steps; nil: steps reach the end of the priority

	// died has the dead letters that were stored since the read of steps began.
	died map[domain.EntryID]*domain.Retry
}

// A walkStep is an entry in the range of a replay.
type walkStep struct {
	at        domain.Position
	published time.Time
	matches   bool
	dead      *domain.Retry
}

// walkAhead is the number of entries that are read at a time, and that are handled before other
// cursors are served.
const walkAhead = 100

// replayEntries repeats deliveries, as long as the receiver and the rate permit it. While fresh
// entries wait, replayed and fresh deliveries take turns. Fresh entries that must wait for a retry
// do not delay the replay.
func (s *service) replayEntries() {
	if s.leaving || s.retaking || s.receiver == nil || !s.engine.mayCall(s.shard) {
		return
	}
	for range walkAhead {
		if !s.cursor.ViewStanding().IsReplaying() {
			s.walk = nil
			return
		}
		now := s.engine.opts.Clock()
		r, _ := s.cursor.Replaying()
		if s.walk == nil || s.walk.id != r.ID {
			s.walk = s.newWalk(&r)
		}
		if !s.cursor.CanReplay(now) || s.isFreshDue && s.hasFresh() || time.Now().Before(s.walk.after) || !s.replayNext(&r, now) {
			return
		}
	}
	s.wake()
}

func (s *service) newWalk(r *domain.Replay) *replayWalk {
	w := &replayWalk{
		id: r.ID, limiter: rate.NewLimiter(rate.Limit(r.Rate), max(r.Rate/10, 1)), died: make(map[domain.EntryID]*domain.Retry),
		next: &r.At,
	}
	if r.Filter == "" {
		return w
	}
	w.matches = func(*repository.Entry) bool { return false }
	if s.receiver.Compile == nil {
		return w
	}
	matches, err := s.receiver.Compile(r.Filter)
	if err != nil { // another version of the hub may have accepted the filter
		s.engine.logWarning(s.engine.ctx, "compile the filter of a replay", err, slog.String("cursor", s.id.String()))
		return w
	}
	w.matches = matches
	return w
}

// hasFresh reports whether the stream is known to have entries that were not taken and do not
// wait for a failed delivery.
func (s *service) hasFresh() bool { return !s.waitingPriorities().IsEmpty() && !s.cursor.IsStopped() }

// replayNext handles the next entry of a replay. It returns false if the replay has to wait.
func (s *service) replayNext(r *domain.Replay, now time.Time) bool {
	w := s.walk
	for len(w.steps) > 0 && (w.steps[0].at.Priority != r.At.Priority || w.steps[0].at.Number < r.At.Number) {
		w.steps = w.steps[1:]
	}
	if len(w.steps) == 0 {
		switch {
		case w.reading:
			return false
		case w.next == nil:
			s.cursor.EndReplayPriority()
			w.next = &domain.Position{}
			s.replayPassed()
			return true
		case w.next.Priority == r.At.Priority && w.next.Number > r.At.Number:
			s.cursor.SkipReplay(*w.next)
			s.replayPassed()
			return true
		}
		s.readWalk(*r)
		return false
	}
	step := w.steps[0]
	if !step.matches {
		s.cursor.SkipReplay(step.at.Next())
		s.replayPassed()
		return true
	}
	if wait := w.reserveDelivery(); wait > 0 {
		w.after = time.Now().Add(wait)
		return false
	}
	if died := w.died[step.at.EntryID]; died != nil {
		step.dead = died
	}
	s.cursor.TakeReplay(step.at, step.published, step.dead, now)
	s.isFreshDue, s.urgent = true, true
	s.markDirty()
	return true
}

// replayPassed records that the replay has passed an entry without making a delivery.
func (s *service) replayPassed() {
	s.filtered++
	s.markDirty()
	if _, isRunning := s.cursor.Replaying(); !isRunning {
		s.urgent = true
	}
}

// reserveDelivery takes a token for one delivery from the rate limiter. If there is no token,
// it returns how long to wait.
func (w *replayWalk) reserveDelivery() time.Duration {
	now := time.Now()
	reserved := w.limiter.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}

type walkResult struct {
	walk  *replayWalk
	steps []walkStep
	next  *domain.Position
	err   error
}

// readWalk reads the next entries of a replay.
func (s *service) readWalk(r domain.Replay) {
	w, e, receives := s.walk, s.engine, s.receiver.Matches
	w.reading, w.died = true, make(map[domain.EntryID]*domain.Retry)
	e.store.runTask(s.topic, func() {
		result := &walkResult{walk: w}
		if r.OnlyDead {
			result.err = e.readDead(e.ctx, s, &r, w.matches, result)
		} else {
			result.err = e.readAll(e.ctx, s, &r, func(entry *repository.Entry) bool {
				return (receives == nil || receives(entry)) && (w.matches == nil || w.matches(entry))
			}, result)
		}
		s.postEvent(func(in *inbox) { in.walked = result })
	})
}

func (s *service) finishWalk(r *walkResult) {
	r.walk.reading = false
	if r.err != nil {
		r.walk.failures++
		r.walk.after = time.Now().Add(s.engine.opts.Backoff(r.walk.failures))
		s.engine.logWarning(s.engine.ctx, "read the entries of a replay", r.err, slog.String("cursor", s.id.String()))
		return
	}
	r.walk.failures, r.walk.steps, r.walk.next = 0, r.steps, r.next
}

// clockMargin is how much the clocks of the nodes that append to a stream may differ before a
// replay misses entries at the ends of its range.
const clockMargin = time.Minute

// readAll reads entries of the stream from the position of a replay on, with their dead letters.
func (e *Engine) readAll(ctx context.Context, s *service, r *domain.Replay, matches func(*repository.Entry) bool, result *walkResult) error {
	from := r.At
	if from.Number == 0 {
		at, err := e.Streams.Seek(ctx, s.topic.stream, from.Priority, func(_ int64, published time.Time) bool {
			return published.Before(r.From.Add(-clockMargin))
		})
		if err != nil {
			return err
		}
		from = at
	}
	found, err := e.Streams.Read(ctx, s.topic.stream, from, walkAhead)
	if err != nil {
		return err
	}
	e.window.putEntries(s.topic.stream, found.Entries)
	next := found.Start
	if len(found.Entries) > 0 {
		dead, err := e.Cursors.DeadLetters(ctx, s.id, entryBefore(found.Entries[0].Position.EntryID), len(found.Entries))
		if err != nil {
			return err
		}
		letters := make(map[domain.EntryID]*domain.Retry, len(dead))
		for i := range dead {
			letters[dead[i].EntryID] = &dead[i]
		}
		for i := range found.Entries {
			entry := &found.Entries[i]
			if !entry.Published.Before(r.To.Add(clockMargin)) {
				return nil // all later entries were published after r.To
			}
			result.steps = append(result.steps, walkStep{
				at: entry.Position, published: entry.Published, dead: letters[entry.Position.EntryID],
				matches: r.Includes(entry.Published) && matches(entry),
			})
			next = entry.Position.Next()
		}
	}
	if next.Number == r.At.Number {
		return domain.Errorf(domain.Unavailable, "entry %s is not visible yet", r.At.EntryID)
	}
	result.next = &next
	return nil
}

// readDead reads dead letters from the position of a replay on.
func (e *Engine) readDead(ctx context.Context, s *service, r *domain.Replay, matches func(*repository.Entry) bool, result *walkResult) error {
	dead, err := e.Cursors.DeadLetters(ctx, s.id, entryBefore(r.At.EntryID), walkAhead)
	if err != nil {
		return err
	}
	for i := range dead {
		d := &dead[i]
		if d.Priority != r.At.Priority {
			return nil
		}
		step := walkStep{at: d.Position, published: d.Published, dead: d, matches: r.Includes(d.Published)}
		if step.matches && matches != nil {
			if step.matches, err = e.matchesAt(ctx, s.topic.stream, d.Position, matches); err != nil {
				return err
			}
		}
		result.steps = append(result.steps, step)
	}
	if len(dead) == walkAhead {
		next := dead[len(dead)-1].Next()
		result.next = &next
	}
	return nil
}

// matchesAt reports whether a filter matches the entry at a position. An expired entry does not
// match.
func (e *Engine) matchesAt(ctx context.Context, stream domain.StreamName, at domain.Position, matches func(*repository.Entry) bool) (bool, error) {
	if entry := e.window.findEntry(stream, at.EntryID); entry != nil {
		return matches(entry), nil
	}
	found, err := e.Streams.Read(ctx, stream, at, 1)
	if err != nil || len(found.Entries) == 0 || found.Entries[0].Position.EntryID != at.EntryID {
		return false, err
	}
	return matches(&found.Entries[0]), nil
}

// entryBefore returns the greatest id that is less than e.
func entryBefore(e domain.EntryID) domain.EntryID {
	switch {
	case e.Number > 0:
		return domain.EntryID{Priority: e.Priority, Number: e.Number - 1}
	case e.Priority > 0:
		return domain.EntryID{Priority: e.Priority - 1, Number: math.MaxInt64}
	default:
		return domain.EntryID{Number: -1}
	}
}
