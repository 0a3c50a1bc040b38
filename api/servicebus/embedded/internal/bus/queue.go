package bus

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"time"
)

// A part says which queue of an entity one is.
type part byte

const (
	mainPart part = iota
	deadLetterPart
	transferPart // dead letters of forwarding
)

// A queue is one sequence of messages: of an entity itself, or of its dead
// letters. Its messages are in the store; in memory there are only numbers,
// and what is locked or waited for.
type queue struct {
	id     queueID
	entity *entity
	part   part

	last      int64 // the newest sequence number
	active    int64
	deferred  int64
	scheduled int64
	bytes     int64

	lanes   map[string]*lane // those in memory: of held sessions, or the only one
	locked  map[int64]*lock
	waiting list.List // of *sessionWaiter: for the next session
	overdue []byte    // up to here, messages that expired are gone or locked
	chores  *deadline // when a message becomes due or expires, or an id can be forgotten
}

func newQueue(e *entity, p part) *queue {
	return &queue{id: idOf(e.number, p), entity: e, part: p, lanes: map[string]*lane{}, locked: map[int64]*lock{}}
}

// hasSessions says that messages are received by session. Dead letters are not.
func (q *queue) hasSessions() bool { return q.part == mainPart && q.entity.config.RequiresSession }

// laneOf names the lane of a message: its session, or the one lane of a queue
// without sessions.
func (q *queue) laneOf(m *Message) string {
	if q.hasSessions() && m.SessionID != nil {
		return *m.SessionID
	}
	return ""
}

// A place is what has to be known of a stored message to take it out.
type place struct {
	seq   int64
	lane  string
	state State
	size  int64
	until time.Time // when it expires; zero: never
}

func (q *queue) placeOf(m *Message, size int) place {
	return place{m.SequenceNumber, q.laneOf(m), m.State, int64(size), m.ExpiresAt}
}

// insert stores a new message at the end of a queue.
func (b *Bus) insert(q *queue, m Message) int64 {
	q.last++
	m.SequenceNumber = q.last
	record := encode(&m)
	p := q.placeOf(&m, len(record))
	b.journal.put(messageKey(q.id, p.seq), record)
	b.index(q, p, m.ScheduledFor)
	if !p.until.IsZero() && m.State != Scheduled {
		b.journal.put(timeKey(tableExpiry, q.id, p.until, p.seq), []byte{})
		b.remind(q, p.until)
	}
	q.bytes += p.size
	b.changed[q] = struct{}{}
	return p.seq
}

// index enters a message into the table of its state.
func (b *Bus) index(q *queue, p place, due time.Time) {
	switch p.state {
	case Scheduled:
		q.scheduled++
		b.journal.put(timeKey(tableSchedule, q.id, due, p.seq), []byte{})
		b.remind(q, due)
	case Deferred:
		q.deferred++
		b.journal.put(sessionKey(tableDeferred, q.id, p.lane, p.seq), []byte{})
	default:
		q.active++
		if q.hasSessions() && b.firstOf(q, p.lane) == 0 {
			b.journal.put(headKey(q.id, p.seq), []byte(p.lane))
		}
		b.journal.put(sessionKey(tableLane, q.id, p.lane, p.seq), []byte{})
		b.look(q, p.lane)
	}
}

// unindex is the reverse; due counts for scheduled messages only.
func (b *Bus) unindex(q *queue, p place, due time.Time) {
	switch p.state {
	case Scheduled:
		q.scheduled--
		b.journal.remove(timeKey(tableSchedule, q.id, due, p.seq))
	case Deferred:
		q.deferred--
		b.journal.remove(sessionKey(tableDeferred, q.id, p.lane, p.seq))
	default:
		q.active--
		b.journal.remove(sessionKey(tableLane, q.id, p.lane, p.seq))
		if q.hasSessions() && b.journal.get(headKey(q.id, p.seq)) != nil {
			b.journal.remove(headKey(q.id, p.seq))
			if next := b.firstOf(q, p.lane); next != 0 {
				b.journal.put(headKey(q.id, next), []byte(p.lane))
			}
			b.look(q, p.lane)
		}
	}
}

// remove takes a message out of a queue.
func (b *Bus) remove(q *queue, p place, due time.Time) {
	b.journal.remove(messageKey(q.id, p.seq))
	b.unindex(q, p, due)
	if !p.until.IsZero() && p.state != Scheduled {
		b.journal.remove(timeKey(tableExpiry, q.id, p.until, p.seq))
	}
	q.bytes -= p.size
	b.changed[q] = struct{}{}
}

// replace stores a message that changed where it is, and returns its new
// place.
func (b *Bus) replace(q *queue, p place, m *Message) place {
	record := encode(m)
	b.journal.put(messageKey(q.id, p.seq), record)
	q.bytes += int64(len(record)) - p.size
	b.changed[q] = struct{}{}
	p.size = int64(len(record))
	if m.State != p.state {
		b.unindex(q, p, time.Time{})
		p.state = m.State
		b.index(q, p, time.Time{})
	}
	return p
}

// read returns a stored message, and false if there is none.
func (b *Bus) read(q *queue, seq int64) (Message, place, bool) {
	record := b.journal.get(messageKey(q.id, seq))
	if record == nil {
		return Message{}, place{}, false
	}
	m, err := decode(record)
	if err != nil {
		b.journal.failure = fmt.Errorf("message %d of %s: %w", seq, q.entity.config.Path, err)
		return Message{}, place{}, false
	}
	return m, q.placeOf(&m, len(record)), true
}

// firstOf returns the first active message of a lane, 0 if there is none.
func (b *Bus) firstOf(q *queue, lane string) int64 { return b.nextOf(q, lane, 0) }

// nextOf returns the first active message of a lane from a sequence number on,
// 0 if there is none.
func (b *Bus) nextOf(q *queue, lane string, from int64) int64 {
	prefix := sessionPrefix(tableLane, q.id, lane)
	k := b.journal.first(appendNumber(prefix[:len(prefix):len(prefix)], from), endOfPrefix(prefix))
	if k == nil {
		return 0
	}
	return lastNumber(k)
}

// look has a lane and its queue looked at again after the next commit.
func (b *Bus) look(q *queue, lane string) {
	if l := q.lanes[lane]; l != nil {
		b.journal.pending.lanes[l] = struct{}{}
	} else if q.waiting.Len() > 0 {
		b.journal.pending.queues[q] = struct{}{}
	}
}

// writeCounters stores the counters of the queues that changed.
func (b *Bus) writeCounters() {
	for q := range b.changed {
		if !q.entity.deleted {
			b.journal.put(key(tableCounters, q.id, 0), q.counters())
		}
	}
	clear(b.changed)
}

func (q *queue) counters() []byte {
	var v []byte
	for _, n := range []int64{q.last, q.active, q.deferred, q.scheduled, q.bytes} {
		v = binary.AppendVarint(v, n)
	}
	return v
}

func (q *queue) restore(counters []byte) {
	r := recordReader{rest: counters}
	q.last, q.active, q.deferred, q.scheduled, q.bytes = r.number(), r.number(), r.number(), r.number(), r.number()
}
