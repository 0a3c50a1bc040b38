package bus

import (
	"bytes"
	"time"
)

const (
	// choreStep bounds what one turn of a queue's chores takes on.
	choreStep = 256
	// choreBytes is how much may wait for the disk when one begins.
	choreBytes = 8 << 20
)

// remind has the chores of a queue done at a time, or earlier. What is overdue
// stands behind all else that is.
func (b *Bus) remind(q *queue, at time.Time) {
	if q.entity.deleted {
		return
	}
	if now := b.clock.Now(); at.Before(now) {
		at = now
	}
	switch {
	case q.chores == nil:
		q.chores = b.schedule(at, func() { b.doChores(q) })
	case q.chores.index < 0 || at.Before(q.chores.at):
		b.move(q.chores, at)
	}
}

// remindFirst looks up when the next chore is due.
func (b *Bus) remindFirst(q *queue) {
	for _, table := range []byte{tableSchedule, tableExpiry, tableForget} {
		if k := b.journal.first(q.firstDue(table), endOfPrefix(key(table, q.id, 0))); k != nil {
			b.remind(q, timeOf(k))
		}
	}
}

// firstDue is where to look for what is due. Expired messages that were locked
// are passed over: they expire when their lock ends.
func (q *queue) firstDue(table byte) []byte {
	if table == tableExpiry && q.overdue != nil {
		return q.overdue
	}
	return key(table, q.id, 0)
}

// doChores lets scheduled messages in, takes expired ones out, and forgets ids
// that no longer count as duplicates. It does not run ahead of the disk.
func (b *Bus) doChores(q *queue) {
	if g := b.journal.pending; g.bytes > choreBytes {
		g.queues[q] = struct{}{}
		return
	}
	b.eachDue(q, tableSchedule, b.letIn)
	b.eachDue(q, tableExpiry, b.takeOut)
	b.eachDue(q, tableForget, b.forget)
	b.cancel(q.chores)
	b.remindFirst(q)
}

func (b *Bus) eachDue(q *queue, table byte, do func(q *queue, key []byte)) {
	var due [][]byte
	b.journal.scan(q.firstDue(table), appendNumber(key(table, q.id, 8), b.clock.Now().UnixMilli()+1), func(k, _ []byte) bool {
		due = append(due, bytes.Clone(k))
		return len(due) < choreStep
	})
	for _, k := range due {
		do(q, k)
	}
}

// letIn enqueues a scheduled message, as if it was sent now.
func (b *Bus) letIn(q *queue, k []byte) {
	m, p, ok := b.read(q, lastNumber(k))
	if !ok || m.State != Scheduled {
		b.journal.remove(k)
		return
	}
	b.remove(q, p, m.ScheduledFor)
	m.EnqueuedSequenceNumber = p.seq
	b.arrive(q.entity, m, 0)
}

// takeOut expires a message that is not locked.
func (b *Bus) takeOut(q *queue, k []byte) {
	q.overdue = append(bytes.Clone(k), 0)
	seq := lastNumber(k)
	if q.locked[seq] != nil {
		return
	}
	if m, p, ok := b.read(q, seq); ok {
		b.expire(q, m, p)
	}
}

// expire removes a message whose time is over, or makes it a dead letter.
func (b *Bus) expire(q *queue, m Message, p place) {
	if q.entity.config.DeadLetterOnExpiry {
		b.deadLetter(q, m, p, ReasonExpired, "The message expired and was dead lettered.")
		return
	}
	b.remove(q, p, time.Time{})
}

// duplicate remembers the id of a message where duplicates are detected. For a
// duplicate it returns the sequence number that a cancellation would need, or
// one that nothing has.
func (b *Bus) duplicate(e *entity, m *Message) int64 {
	if e.config.DuplicateWindow == 0 {
		return 0
	}
	now, k := b.now(), duplicateKey(e.main.id, m.ID)
	if v := b.journal.get(k); len(v) == 16 && number(v) > now.UnixMilli() {
		return number(v[8:])
	}
	until := now.Add(e.config.DuplicateWindow)
	b.journal.put(k, appendNumber(appendNumber(nil, until.UnixMilli()), e.main.last+1))
	b.journal.put(forgetKey(e.main.id, until, m.ID), []byte{})
	b.remind(e.main, until)
	return 0
}

func (b *Bus) forget(q *queue, k []byte) {
	b.journal.remove(k)
	id := string(k[6+8:])
	if v := b.journal.get(duplicateKey(q.id, id)); v != nil && number(v) <= timeOf(k).UnixMilli() {
		b.journal.remove(duplicateKey(q.id, id))
	}
}
