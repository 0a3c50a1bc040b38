package delivery

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A service serves a cursor. Events are posted to its inbox. While the inbox has events, a
// goroutine handles them one after the other.
type service struct {
	engine *Engine
	id     domain.CursorID
	shard  int
	topic  *topic
	offers offers

	mu      sync.Mutex
	inbox   inbox
	active  bool // a goroutine handles events
	timer   *time.Timer
	calling map[domain.EntryID]struct{} // calls under way

	mayWarn  atomic.Bool // the cursor may have warnings
	warnedAt time.Time   // when warnings were logged last; only reviewWarnings uses it

	// The following fields belong to the goroutine that handles events.
	wanted   bool // the cursor has to be loaded
	receiver *Receiver
	cursor   *domain.Cursor // nil: the cursor is not in memory
	version  repository.CursorVersion
	current  bool      // as far as this node knows, cursor equals the stored one
	resume   time.Time // no load or settlement begins before this time, on the monotonic clock
	failures int       // consecutive failures of the store
	due      time.Time // due time of the first retry, while the cursor is not in memory
	forgot   time.Time // when the cursor was removed from memory, by the clock that stamps attempts, without its monotonic reading

	loading     bool
	settling    bool                // a settlement is being stored, or the cursor is being retired
	underway    int                 // calls
	turn        domain.PriorityTurn // decides which delivery of queue 0 is next
	changed     bool                // the receiver has to be looked up again
	dirty       time.Time           // since when there are results to settle; zero: no results
	urgent      bool                // the settlement must not wait for the result of a call
	filtered    int                 // number of entries that were passed without a delivery since the last settlement
	settleTook  time.Duration       // duration of the last settlement
	settledAt   time.Time           // the end of the last settlement
	hasOffered  bool                // the cursor was offered to the dispatcher after beginWork last began
	isGathering bool                // results wait for the results of other calls
	refusals    int                 // consecutive permits that were not used
	offerAfter  time.Time           // the cursor is not offered before this time
	careful     bool                // the cursor is served carefully, until domain.Cursor.EndCaution ends this
	retaking    bool                // the cursor has to take entries again that were taken before it was loaded again

	unread map[domain.EntryID]int // consecutive failures to read the message of a delivery

	fetching      bool
	fetched       map[domain.EntryID]*repository.Entry // entries that are kept in memory until they are used
	fetchAfter    time.Time                            // no entry is read before this time, on the monotonic clock
	fetchFailures int                                  // consecutive failures of fetches

	requests   []replayRequest // requests to replay that were not carried out
	requested  atomic.Int64    // number of the last request that was read
	noted      atomic.Int64    // newest value of repository.ShardEntry.Changes that was read
	followed   int64           // value of noted when the receiver was read last
	walk       *replayWalk     // entries of the running replay; nil: no entries were read yet
	limiter    *rate.Limiter   // limits the rate of calls, on the monotonic clock; nil: no limit
	isFreshDue bool            // the last delivery was replayed, so a fresh delivery is next

	isWatch       bool        // the receiver is a watch: see watchedStream
	visits        []*visit    // visits that wait for this service
	isListed      bool        // the shard had an entry for the watch
	isNoted       atomic.Bool // an entry in the shard was found since the watch was unlisted
	isResident    bool        // the service is counted in Engine.residents
	isReadingEnd  bool        // the current end of the stream is being read
	hasCurrentEnd bool        // the current end was read since the cursor was loaded
	calledAt      time.Time   // when the last call began

	cancelled bool // all deliveries are cancelled, because the receiver was deleted
	isGone    bool // the cursor was removed
	isMissing bool // the cursor was not found, perhaps because it is being created
	leaving   bool
	created   bool // the cursor was created since the last load
	shedding  bool // the service ends because another node gets the shard
	releasing bool // the settlement under way releases the cursor
	released  bool
	quiet     time.Time // since when the service is idle; zero: it is busy
}

// A cursor that leaves maxRefusals consecutive permits unused is not offered for refusalPause.
const (
	maxRefusals  = 8
	refusalPause = 10 * time.Millisecond
)

// An inbox has the events to handle.
type inbox struct {
	woken    bool // there may be new entries
	ticked   bool // the timer has fired
	changed  bool
	created  bool // the cursor was created
	leave    bool
	shed     bool
	permits  []*permit
	outcomes []callOutcome
	loaded   *loadResult
	settled  *settleResult
	retired  *retireResult
	fetched  *fetchResult
	walked   *walkResult
	visits   []*visit
	listed   bool // the shard has an entry for the watch
	end      *endResult
}

type callOutcome struct {
	domain.Outcome
	permit  *permit
	suspect bool
}

// postEvent adds an event. It returns false if the engine has ended.
func (s *service) postEvent(add func(*inbox)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.active {
		if !s.engine.spawn(s.handleInbox) {
			return false
		}
		s.active = true
	}
	add(&s.inbox)
	return true
}

func (s *service) wake() { s.postEvent(func(in *inbox) { in.woken = true }) }

func (s *service) tick() { s.postEvent(func(in *inbox) { in.ticked = true }) }

func (s *service) handleInbox() {
	for {
		s.mu.Lock()
		in := s.inbox
		s.inbox = inbox{}
		if in.isEmpty() {
			s.active = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		s.handleEvents(&in)
	}
}

func (in *inbox) isEmpty() bool { return !in.ticked && in.isTickOnly() }

// isTickOnly reports whether the timer is the only event.
func (in *inbox) isTickOnly() bool {
	return !in.woken && !in.changed && !in.created && !in.leave && !in.shed && len(in.permits) == 0 && len(in.outcomes) == 0 &&
		in.loaded == nil && in.settled == nil && in.retired == nil && in.fetched == nil && in.walked == nil && len(in.visits) == 0 && !in.listed && in.end == nil
}

// handleEvents handles events, and begins the resulting work.
func (s *service) handleEvents(in *inbox) {
	if !in.isTickOnly() {
		s.quiet = time.Time{}
	}
	s.shedding = s.shedding || in.shed
	s.leaving = s.leaving || in.leave || in.shed
	if in.woken {
		s.wanted = true
	}
	if in.changed {
		s.changed, s.current, s.wanted = true, false, true
	}
	s.created = s.created || in.created && s.cursor == nil
	if len(in.visits) > 0 {
		s.visits, s.wanted = append(s.visits, in.visits...), true
	}
	s.isListed = s.isListed || in.listed
	for _, o := range in.outcomes {
		s.underway--
		if o.Answer.Began.IsZero() { // the engine has cancelled the call
			continue
		}
		if o.Answer.Unread {
			s.postponeUnread(o.Outcome)
			continue
		}
		delete(s.unread, o.Entry)
		s.cursor.Settle(o.Outcome)
		if o.Answer.Lost {
			s.markDirty()
			continue
		}
		s.engine.dispatcher.setSuspect(s, o.suspect)
		s.markDirty()
	}
	if in.settled != nil {
		s.finishSettle(in.settled)
	}
	if in.retired != nil {
		s.finishRetire(in.retired)
	}
	if in.loaded != nil {
		s.finishLoad(in.loaded)
	}
	if in.fetched != nil {
		s.finishFetch(in.fetched)
	}
	if in.walked != nil {
		s.finishWalk(in.walked)
	}
	if in.end != nil {
		s.finishReadEnd(in.end)
	}
	for _, p := range in.permits {
		if s.beginCall(p) {
			s.refusals = 0
			continue
		}
		if s.refusals++; s.refusals > maxRefusals {
			s.offerAfter = time.Now().Add(refusalPause)
		}
		s.engine.dispatcher.releasePermit(p)
	}
	s.beginWork()
	for _, o := range in.outcomes {
		s.engine.dispatcher.releasePermit(o.permit)
	}
}

// beginWork begins all work that may begin now.
func (s *service) beginWork() {
	if s.leaving && s.isDone() {
		s.engine.removeService(s)
		s.abandonVisits()
		return
	}
	began, clock := time.Now(), s.engine.opts.Clock()
	s.isGathering, s.hasOffered = false, false
	switch {
	case time.Now().Before(s.resume):
	case !s.current:
		s.loadCursor()
	default:
		s.retakeCalled()
		if s.followReplays() {
			s.offerCalls()
			s.replayEntries()
		}
		s.listSlow()
		s.beginSettlement()
		s.endVisits()
		if s.leaveWatch(); s.leaving && s.isDone() {
			s.engine.removeService(s)
			return
		}
		s.beginSettlement()
	}
	s.setTimer(began, clock)
}

// isDone reports whether a service that is ending has finished its work.
func (s *service) isDone() bool {
	if s.underway > 0 || s.loading || s.settling {
		return false
	}
	if s.shedding && !s.current && !s.engine.isAssigned(s.shard) {
		return true // another node serves the cursor, and loading would take it over
	}
	return s.cursor == nil || s.released
}

// pauseStore makes the service wait before it uses the store again, after a failure.
func (s *service) pauseStore() {
	s.failures++
	s.resume = time.Now().Add(s.engine.opts.Backoff(s.failures))
}

func (s *service) markDirty() {
	if s.dirty.IsZero() {
		s.dirty = time.Now()
	}
}

// setTimer sets the timer to the first time after began at which work is due, both by the
// monotonic clock and by the clock that stamps attempts. It includes work that became due
// during this turn, because the turn may have passed over it.
func (s *service) setTimer(began, now time.Time) {
	wait := time.Duration(-1)
	until := func(d time.Duration) {
		if d > 0 && (wait < 0 || d < wait) {
			wait = d
		}
	}
	until(s.resume.Sub(began))
	until(s.fetchAfter.Sub(began))
	until(s.offerAfter.Sub(began))
	until(s.waitForToken(began))
	until(s.waitForVisit(began))
	if s.walk != nil {
		until(s.walk.after.Sub(began))
	}
	if s.current && !s.settling && !s.fetching {
		if s.underway == 0 {
			s.forgetIdle(now)
		}
		until(s.waitForCursor(now))
	}
	if s.cursor == nil && !s.due.IsZero() && !s.loading && !s.resume.After(began) && s.engine.mayLoad(s.shard) {
		until(max(min(s.due.Sub(now), s.engine.opts.CheckInterval), time.Millisecond))
	}
	if !s.dirty.IsZero() && !s.settling {
		until(s.dirty.Add(lazySettle).Sub(began))
		if s.isGathering {
			until(max(time.Until(s.gatherUntil()), time.Microsecond))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case wait < 0 && s.timer != nil:
		s.timer.Stop()
	case wait < 0:
	case s.timer == nil:
		s.timer = time.AfterFunc(wait, s.tick)
	default:
		s.timer.Reset(wait)
	}
}

func (s *service) stopTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
}

// waitForCursor returns how long the cursor has no work. It is 0 if the cursor is not in
// memory. If work waits for a time of the clock that stamps attempts, the result is at most the
// interval between looks, because this clock may be set during the wait.
func (s *service) waitForCursor(now time.Time) time.Duration {
	if s.cursor == nil {
		return 0
	}
	standing := s.cursor.ViewStanding()
	wait := s.engine.opts.Idle
	if standing.State == domain.Active {
		times := []time.Time{s.cursor.EarliestDue(), s.cursor.EarliestPostponed(now)}
		if s.isBehind(standing) || len(standing.Open) > 0 || standing.IsReplaying() {
			times = append(times, standing.Hold, standing.BreakerTo)
		}
		for _, t := range times {
			if t.IsZero() {
				continue
			}
			wait = min(wait, s.engine.opts.CheckInterval)
			if d := t.Sub(now); d > 0 {
				wait = min(wait, d)
			}
		}
	}
	return wait
}

// isBehind reports whether the stream is known to have entries that were not taken.
func (s *service) isBehind(standing *domain.Standing) bool {
	end, _ := s.topic.knownEnds()
	for p := range domain.Priorities {
		if end[p] > standing.Position(p).Number {
			return true
		}
	}
	return false
}

// forgetIdle removes the cursor from memory if it has been idle for Options.Idle, and will be
// idle for at least the same time.
func (s *service) forgetIdle(now time.Time) {
	idle := s.engine.opts.Idle
	if s.quiet.IsZero() {
		s.quiet = time.Now()
	}
	if s.leaving || !s.current || !s.dirty.IsZero() || s.cursor.HasBounded(now) {
		return
	}
	due := s.cursor.EarliestDue()
	if time.Since(s.quiet) < idle || !due.IsZero() && due.Sub(now) < idle {
		return
	}
	standing := s.cursor.ViewStanding()
	if len(standing.Open) > 0 || s.cursor.InFlight() > 0 || standing.IsReplaying() && standing.State == domain.Active || s.isBehind(standing) && standing.State == domain.Active {
		return
	}
	s.due, s.forgot = due, now.Round(0)
	s.cursor, s.receiver, s.current, s.fetched, s.wanted = nil, nil, false, nil, false
}
