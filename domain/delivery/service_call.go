package delivery

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// offerCalls offers the cursor to the queues of its next calls.
func (s *service) offerCalls() {
	if s.leaving || s.retaking || time.Now().Before(s.offerAfter) || !s.engine.mayCall(s.shard) {
		return
	}
	if s.receiver == nil {
		s.cancelDeliveries()
		return
	}
	if s.waitForToken(time.Now()) > 0 {
		return
	}
	now, d := s.engine.opts.Clock(), s.engine.dispatcher
	call, ok := s.cursor.Next(now)
	if ok && call.Claim {
		s.urgent = true
		s.markDirty()
		return
	}
	hasEntry := ok && s.findEntry(call.Position) != nil
	if ok && !hasEntry {
		s.fetchEntries(call.Position, false)
	}
	isFirst := ok && d.queueOf(call.Attempts) == 0 // call goes before fresh deliveries of its priority
	switch waiting := s.waitingPriorities(); {
	case isFirst && (waiting.IsEmpty() || waiting.Highest() <= call.Priority):
		if hasEntry {
			s.offerTo(0, call.Priority)
		}
		return
	case hasEntry && !isFirst:
		s.offerTo(d.queueOf(call.Attempts), call.Priority)
	}
	f := s.nextFresh(now)
	switch {
	case f.entry != nil:
		s.offerTo(0, f.highest)
	case isFirst && hasEntry:
		s.offerTo(0, call.Priority)
	case !isFirst && !f.isWaiting && s.careful && s.cursor.EndCaution(now):
		s.careful = false
		s.offerCalls() // a due retry may have waited for the end of careful serving
	}
}

func (s *service) offerTo(queue, priority int) {
	s.hasOffered = true
	s.engine.dispatcher.offerCursor(s, queue, priority)
}

// waitingPriorities returns the priorities for which the stream is known to have entries that
// were not taken.
func (s *service) waitingPriorities() domain.PrioritySet {
	var waiting domain.PrioritySet
	end, _ := s.topic.knownEnds()
	for p := range domain.Priorities {
		if end[p] > s.cursor.Position(p).Number {
			waiting.Add(p)
		}
	}
	return waiting
}

// A freshEntry describes the next entry of the stream that may be taken.
type freshEntry struct {
	entry     *repository.Entry // an entry that matches the filter; nil: no such entry is in memory
	highest   int               // the highest priority that waits
	isWaiting bool              // there may be an entry that was not read yet
}

// nextFresh returns the next entry of the stream that may be taken and matches the filter, in
// the priority whose turn it is. It takes the entries before it that do not match.
func (s *service) nextFresh(now time.Time) freshEntry {
	waiting := s.waitingPriorities()
	if waiting.IsEmpty() {
		return freshEntry{}
	}
	highest := waiting.Highest()
	for !waiting.IsEmpty() {
		p := s.turn.Next(waiting)
		if e, isWaiting := s.freshOf(p, now); e != nil || isWaiting {
			return freshEntry{e, highest, isWaiting}
		}
		waiting.Remove(p)
	}
	return freshEntry{}
}

// freshOf does the work of nextFresh for one priority.
func (s *service) freshOf(priority int, now time.Time) (next *repository.Entry, isWaiting bool) {
	end, _ := s.topic.knownEnds()
	for {
		at := s.cursor.Position(priority)
		if at.Number >= end[priority] || !s.cursor.CanTake(priority, now) {
			return nil, false
		}
		e := s.findEntry(at)
		if e == nil {
			s.fetchEntries(at, true)
			return nil, true
		}
		if s.passesFilter(e) {
			return e, false
		}
		s.takeEntry(e, false)
		if s.filtered++; s.filtered >= maxFiltered { // settle the filtered entries, and let other cursors be served
			s.wake()
			return nil, true
		}
	}
}

func (s *service) passesFilter(e *repository.Entry) bool {
	return s.receiver == nil || s.receiver.Matches == nil || s.receiver.Matches(e)
}

func (s *service) takeEntry(e *repository.Entry, matches bool) {
	s.cursor.Take(e.Position, matches)
	if matches {
		s.isFreshDue = false
	}
	s.markDirty()
}

// beginCall begins a call with permit p. It returns false if the cursor has no delivery to call
// now.
func (s *service) beginCall(p *permit) bool {
	if !s.current || s.leaving || s.retaking || s.receiver == nil || time.Now().Before(s.resume) || !s.engine.mayCall(s.shard) || s.waitForToken(time.Now()) > 0 {
		return false
	}
	now := s.engine.opts.Clock()
	call, ok := s.cursor.Next(now)
	if p.queue == 0 && (!ok || s.isFreshFirst(&call)) {
		if f := s.nextFresh(now); f.entry != nil {
			s.takeEntry(f.entry, true)
			call, ok = s.cursor.Next(now)
		}
	}
	if !ok || call.Claim {
		return false
	}
	e := s.findEntry(call.Position)
	if e == nil {
		return false
	}
	delete(s.fetched, call.EntryID)
	if p.queue == 0 {
		s.turn.Pick()
	}
	s.cursor.Begin(call)
	s.takeToken()
	s.underway++
	s.calledAt = time.Now()
	s.noteCall(call.EntryID)
	receiver := s.receiver
	s.engine.spawn(func() {
		slow := time.AfterFunc(slowCall, func() { s.engine.dispatcher.markSlow(p) })
		o := s.engine.callReceiver(s.id, receiver, e, call)
		slow.Stop()
		o.permit = p
		s.postEvent(func(in *inbox) {
			in.outcomes = append(in.outcomes, o)
			delete(s.calling, call.EntryID)
		})
	})
	return true
}

// isFreshFirst reports whether a fresh delivery has to be called before call: call belongs to a
// later queue, or it is the turn of another priority.
func (s *service) isFreshFirst(call *domain.Call) bool {
	if s.engine.dispatcher.queueOf(call.Attempts) > 0 {
		return true
	}
	waiting := s.waitingPriorities()
	waiting.Add(call.Priority)
	return s.turn.Next(waiting) != call.Priority
}

// noteCall records that a call begins.
func (s *service) noteCall(e domain.EntryID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calling == nil {
		s.calling = make(map[domain.EntryID]struct{})
	}
	s.calling[e] = struct{}{}
}

// isCalling reports whether a call with an entry is under way.
func (s *service) isCalling(e domain.EntryID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, isCalling := s.calling[e]
	return isCalling
}

// postponeUnread postpones a delivery whose message could not be read.
func (s *service) postponeUnread(o domain.Outcome) {
	if s.unread == nil {
		s.unread = make(map[domain.EntryID]int)
	}
	s.unread[o.Entry]++
	e := s.engine
	e.logWarning(e.ctx, "read a message", errors.New(o.Answer.Error), slog.String("cursor", s.id.String()), slog.String("entry", o.Entry.String()))
	s.cursor.Postpone(o.Entry, e.opts.Clock().Add(e.opts.Backoff(s.unread[o.Entry])))
}

// slowCall is the duration after which the receiver of a call counts as a suspect, even if the
// call succeeds: slow receivers would otherwise occupy all workers.
const slowCall = 2 * time.Second

// callReceiver calls a receiver and returns the outcome. The outcome has no answer if the engine
// has ended the call.
func (e *Engine) callReceiver(id domain.CursorID, receiver *Receiver, entry *repository.Entry, of domain.Call) callOutcome {
	ctx, cancel := context.WithTimeout(e.ctx, e.opts.Timeout)
	defer cancel()
	began, start := e.opts.Clock(), time.Now()
	a := e.callSafely(ctx, Call{Cursor: id, Receiver: receiver, Entry: entry, Attempt: of.Attempts})
	a.Began, a.Took = began, time.Since(start)
	o := callOutcome{
		Outcome: domain.Outcome{Entry: of.EntryID, Attempts: of.Attempts, Replay: of.Replay, Published: entry.Published, Answer: a},
		suspect: !receiver.Policy.IsSuccess(a) || a.Took > slowCall,
	}
	if !receiver.Policy.IsSuccess(a) && e.ctx.Err() != nil {
		o.Answer = domain.Answer{}
	}
	return o
}

// callSafely calls a receiver. A panic counts as a failed call: otherwise one message would end
// this node, and each node that takes over from it.
func (e *Engine) callSafely(ctx context.Context, c Call) (a domain.Answer) {
	defer func() {
		if reason := recover(); reason != nil {
			e.opts.Logger.ErrorContext(ctx, "a call to a receiver panicked", "cursor", c.Cursor.String(), "entry", c.Entry.Position.EntryID.String(), "reason", reason, "stack", string(debug.Stack()))
			a = domain.Answer{Error: "the hub failed to make the call"}
		}
	}()
	return e.Caller.Call(ctx, c)
}

// findEntry returns an entry that is in memory, nil if it is not.
func (s *service) findEntry(at domain.Position) *repository.Entry {
	if e := s.fetched[at.EntryID]; e != nil {
		return e
	}
	return s.engine.window.findEntry(s.topic.stream, at.EntryID)
}

type fetchResult struct {
	at      domain.Position
	isFresh bool // at is the position of the cursor
	found   repository.Entries
	err     error
}

// readAhead is the number of entries that are read at a time.
const readAhead = 100

// fetchEntries reads entries from a position on, unless another read is under way.
func (s *service) fetchEntries(at domain.Position, isFresh bool) {
	if s.fetching || time.Now().Before(s.fetchAfter) {
		return
	}
	s.fetching = true
	e := s.engine
	e.store.runTask(s.topic, func() {
		r := &fetchResult{at: at, isFresh: isFresh}
		r.found, r.err = e.Streams.Read(e.ctx, s.topic.stream, at, readAhead)
		e.window.putEntries(s.topic.stream, r.found.Entries)
		s.postEvent(func(in *inbox) { in.fetched = r })
	})
}

func (s *service) finishFetch(r *fetchResult) {
	s.fetching = false
	found, at := r.found, r.at
	switch {
	case r.err != nil:
		s.engine.logWarning(s.engine.ctx, "read a stream", r.err, slog.String("stream", s.topic.stream.String()))
	case len(found.Entries) > 0 && found.Entries[0].Position.EntryID == at.EntryID:
		if len(s.fetched) >= maxFetched || s.fetched == nil {
			s.fetched = make(map[domain.EntryID]*repository.Entry)
		}
		first := found.Entries[0]
		s.fetched[at.EntryID] = &first
		s.fetchFailures = 0
		return
	case r.isFresh && len(found.Entries) > 0 && found.Start.Number == at.Number:
		// The stream has no entries between the position and the first entry that was found.
		first := found.Entries[0]
		s.fetched = map[domain.EntryID]*repository.Entry{at.EntryID: &first, first.Position.EntryID: &first}
		s.fetchFailures = 0
		return
	case found.Start.Number > at.Number && s.current:
		if r.isFresh {
			s.skipExpired(found.Start)
		} else {
			s.expireDelivery(at)
		}
		return
	}
	// The entry is not visible yet, or cannot be read.
	s.fetchFailures++
	s.fetchAfter = time.Now().Add(s.engine.opts.Backoff(s.fetchFailures))
}

// maxFetched is the limit for the entries that a service keeps in memory: the next fresh entry,
// the entry of the next retry, and two entries that may no longer be needed.
const maxFetched = 4

// skipExpired moves the cursor past entries that have expired.
func (s *service) skipExpired(start domain.Position) {
	if s.cursor.Position(start.Priority).Number < start.Number {
		s.cursor.Skip(start, s.engine.opts.Clock())
		s.urgent = true
		s.markDirty()
	}
}

// expireDelivery turns a delivery whose message has expired into a dead letter.
func (s *service) expireDelivery(at domain.Position) {
	now := s.engine.opts.Clock()
	call, ok := s.cursor.Next(now)
	if !ok || call.Claim || call.EntryID != at.EntryID {
		return
	}
	s.cursor.Begin(call)
	s.cursor.Settle(domain.Outcome{
		Entry: at.EntryID, Attempts: call.Attempts, Replay: call.Replay, Published: now,
		Answer: domain.Answer{Began: now, Lost: true, Error: "the message expired before an attempt succeeded"},
	})
	s.markDirty()
}
