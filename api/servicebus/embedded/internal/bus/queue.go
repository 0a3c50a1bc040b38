package bus

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"time"
)

// A queuePart tells which queue of an entity is meant: the main queue or one of its dead-letter queues.
type queuePart byte

const (
	mainPart queuePart = iota
	deadLetterPart
	transferPart // transferPart contains messages that could not be forwarded
)

// A messageQueue is either the main queue of an entity or one of its dead-letter queues. The store has the messages;
// memory has only counters, locks and waiting receivers.
type messageQueue struct {
	id     queueID
	entity *entity
	part   queuePart

	last      int64 // sequence number of the newest message
	active    int64
	deferred  int64
	scheduled int64
	bytes     int64

	lanes       map[string]*deliveryLane // lanes of locked sessions; a queue without sessions has one lane
	locked      map[int64]*messageLock
	waiting     list.List // list of *sessionWaiter, the requests for the next session
	overdue     []byte    // key of tableExpiry before which all expired messages are removed or locked
	maintenance *deadline // next time at which a message becomes due or expires, or a message id must be removed
}

func newQueue(e *entity, p queuePart) *messageQueue {
	return &messageQueue{id: idOf(e.number, p), entity: e, part: p, lanes: map[string]*deliveryLane{}, locked: map[int64]*messageLock{}}
}

// hasSessions reports whether receivers receive from sessions. Dead-letter queues have no sessions.
func (q *messageQueue) hasSessions() bool {
	return q.part == mainPart && q.entity.config.RequiresSession
}

// laneOf returns the name of the lane that delivers a message: its session, or "" in a queue without sessions.
func (q *messageQueue) laneOf(m *Message) string {
	if q.hasSessions() && m.SessionID != nil {
		return *m.SessionID
	}
	return ""
}

// A messageRef contains the values that are needed to remove a stored message.
type messageRef struct {
	seq   int64
	lane  string
	state State
	size  int64
	until time.Time // time at which the message expires, or zero
}

func (q *messageQueue) refOf(m *Message, size int) messageRef {
	return messageRef{m.SequenceNumber, q.laneOf(m), m.State, int64(size), m.ExpiresAt}
}

// insertMessage stores a new message at the end of a queue.
func (b *Bus) insertMessage(q *messageQueue, m Message) int64 {
	q.last++
	m.SequenceNumber = q.last
	record := encodeMessage(&m)
	p := q.refOf(&m, len(record))
	b.journal.putKey(messageKey(q.id, p.seq), record)
	b.addToTable(q, p, m.ScheduledFor)
	if !p.until.IsZero() && m.State != Scheduled {
		b.journal.putKey(timeKey(tableExpiry, q.id, p.until, p.seq), []byte{})
		b.scheduleMaintenance(q, p.until)
	}
	q.bytes += p.size
	b.changed[q] = struct{}{}
	return p.seq
}

// addToTable adds a message to the table for its state. due is used only for scheduled messages.
func (b *Bus) addToTable(q *messageQueue, p messageRef, due time.Time) {
	switch p.state {
	case Scheduled:
		q.scheduled++
		b.journal.putKey(timeKey(tableSchedule, q.id, due, p.seq), []byte{})
		b.scheduleMaintenance(q, due)
	case Deferred:
		q.deferred++
		b.journal.putKey(sessionKey(tableDeferred, q.id, p.lane, p.seq), []byte{})
	default:
		q.active++
		if q.hasSessions() && b.firstOf(q, p.lane) == 0 {
			b.journal.putKey(headKey(q.id, p.seq), []byte(p.lane))
		}
		b.journal.putKey(sessionKey(tableLane, q.id, p.lane, p.seq), []byte{})
		b.notifyLane(q, p.lane)
	}
}

// removeFromTable removes a message from the table for its state. due is used only for scheduled messages.
func (b *Bus) removeFromTable(q *messageQueue, p messageRef, due time.Time) {
	switch p.state {
	case Scheduled:
		q.scheduled--
		b.journal.removeKey(timeKey(tableSchedule, q.id, due, p.seq))
	case Deferred:
		q.deferred--
		b.journal.removeKey(sessionKey(tableDeferred, q.id, p.lane, p.seq))
	default:
		q.active--
		b.journal.removeKey(sessionKey(tableLane, q.id, p.lane, p.seq))
		if q.hasSessions() && b.journal.getValue(headKey(q.id, p.seq)) != nil {
			b.journal.removeKey(headKey(q.id, p.seq))
			if next := b.firstOf(q, p.lane); next != 0 {
				b.journal.putKey(headKey(q.id, next), []byte(p.lane))
			}
			b.notifyLane(q, p.lane)
		}
	}
}

// removeMessage removes a message from a queue.
func (b *Bus) removeMessage(q *messageQueue, p messageRef, due time.Time) {
	b.journal.removeKey(messageKey(q.id, p.seq))
	b.removeFromTable(q, p, due)
	if !p.until.IsZero() && p.state != Scheduled {
		b.journal.removeKey(timeKey(tableExpiry, q.id, p.until, p.seq))
	}
	q.bytes -= p.size
	b.changed[q] = struct{}{}
}

// replaceMessage overwrites a stored message, and returns its new messageRef.
func (b *Bus) replaceMessage(q *messageQueue, p messageRef, m *Message) messageRef {
	record := encodeMessage(m)
	b.journal.putKey(messageKey(q.id, p.seq), record)
	q.bytes += int64(len(record)) - p.size
	b.changed[q] = struct{}{}
	p.size = int64(len(record))
	if m.State != p.state {
		b.removeFromTable(q, p, time.Time{})
		p.state = m.State
		b.addToTable(q, p, time.Time{})
	}
	return p
}

// readMessage returns a stored message. It returns false if the message does not exist.
func (b *Bus) readMessage(q *messageQueue, seq int64) (Message, messageRef, bool) {
	record := b.journal.getValue(messageKey(q.id, seq))
	if record == nil {
		return Message{}, messageRef{}, false
	}
	m, err := decodeMessage(record)
	if err != nil {
		b.journal.failure = fmt.Errorf("message %d of %s: %w", seq, q.entity.config.Path, err)
		return Message{}, messageRef{}, false
	}
	return m, q.refOf(&m, len(record)), true
}

// firstOf returns the sequence number of the first active message of a lane, or 0 if the lane is empty.
func (b *Bus) firstOf(q *messageQueue, lane string) int64 { return b.nextOf(q, lane, 0) }

// nextOf returns the first sequence number of an active message of a lane that is not less than from, or 0.
func (b *Bus) nextOf(q *messageQueue, lane string, from int64) int64 {
	prefix := sessionPrefix(tableLane, q.id, lane)
	k := b.journal.firstKey(appendNumber(prefix[:len(prefix):len(prefix)], from), endOfPrefix(prefix))
	if k == nil {
		return 0
	}
	return lastNumber(k)
}

// notifyLane makes the next commit serve a lane and its queue.
func (b *Bus) notifyLane(q *messageQueue, lane string) {
	if l := q.lanes[lane]; l != nil {
		b.journal.pending.lanes[l] = struct{}{}
	} else if q.waiting.Len() > 0 {
		b.journal.pending.queues[q] = struct{}{}
	}
}

// writeCounters stores the counters of all queues whose counters have changed.
func (b *Bus) writeCounters() {
	for q := range b.changed {
		if !q.entity.deleted {
			b.journal.putKey(newKey(tableCounters, q.id, 0), q.encodeCounters())
		}
	}
	clear(b.changed)
}

func (q *messageQueue) encodeCounters() []byte {
	var v []byte
	for _, n := range []int64{q.last, q.active, q.deferred, q.scheduled, q.bytes} {
		v = binary.AppendVarint(v, n)
	}
	return v
}

func (q *messageQueue) decodeCounters(counters []byte) {
	r := recordReader{rest: counters}
	q.last, q.active, q.deferred, q.scheduled, q.bytes = r.readNumber(), r.readNumber(), r.readNumber(), r.readNumber(), r.readNumber()
}
