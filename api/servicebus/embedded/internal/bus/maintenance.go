package bus

import (
	"bytes"
	"time"
)

const (
	// maintenanceStep limits the keys of each table that one maintenance run of a queue processes.
	maintenanceStep = 256
	// maintenanceBytes limits the uncommitted bytes at the start of a run. Above the limit, the run is postponed.
	maintenanceBytes = 8 << 20
)

// scheduleMaintenance schedules the maintenance of a queue at the given time, or keeps an earlier schedule. An overdue
// run starts after all other overdue deadlines.
func (b *Bus) scheduleMaintenance(q *messageQueue, at time.Time) {
	if q.entity.deleted {
		return
	}
	if now := b.clock.Now(); at.Before(now) {
		at = now
	}
	switch {
	case q.maintenance == nil:
		q.maintenance = b.addDeadline(at, func() { b.runMaintenance(q) })
	case q.maintenance.index < 0 || at.Before(q.maintenance.at):
		b.moveDeadline(q.maintenance, at)
	}
}

// scheduleFirst schedules maintenance for the earliest time at which something in the queue is due.
func (b *Bus) scheduleFirst(q *messageQueue) {
	for _, table := range []byte{tableSchedule, tableExpiry, tableForget} {
		if k := b.journal.firstKey(q.firstDue(table), endOfPrefix(newKey(table, q.id, 0))); k != nil {
			b.scheduleMaintenance(q, timeOf(k))
		}
	}
}

// firstDue returns the key at which the search for due keys starts. It skips expired messages that are locked; they
// expire when their lock ends.
func (q *messageQueue) firstDue(table byte) []byte {
	if table == tableExpiry && q.overdue != nil {
		return q.overdue
	}
	return newKey(table, q.id, 0)
}

// runMaintenance enqueues scheduled messages that are due, expires messages, and removes message ids after the
// duplicate window. It is postponed while many writes wait for the disk.
func (b *Bus) runMaintenance(q *messageQueue) {
	if g := b.journal.pending; g.bytes > maintenanceBytes {
		g.queues[q] = struct{}{}
		return
	}
	b.eachDue(q, tableSchedule, b.activateScheduled)
	b.eachDue(q, tableExpiry, b.expireActive)
	b.eachDue(q, tableForget, b.forgetDuplicate)
	b.cancelDeadline(q.maintenance)
	b.scheduleFirst(q)
}

func (b *Bus) eachDue(q *messageQueue, table byte, do func(q *messageQueue, key []byte)) {
	var due [][]byte
	b.journal.scanRange(q.firstDue(table), appendNumber(newKey(table, q.id, 8), b.clock.Now().UnixMilli()+1), func(k, _ []byte) bool {
		due = append(due, bytes.Clone(k))
		return len(due) < maintenanceStep
	})
	for _, k := range due {
		do(q, k)
	}
}

// activateScheduled enqueues a scheduled message that is due, as a new message.
func (b *Bus) activateScheduled(q *messageQueue, k []byte) {
	m, p, ok := b.readMessage(q, lastNumber(k))
	if !ok || m.State != Scheduled {
		b.journal.removeKey(k)
		return
	}
	b.removeMessage(q, p, m.ScheduledFor)
	m.EnqueuedSequenceNumber = p.seq
	b.routeMessage(q.entity, m, 0)
}

// expireActive expires a message unless it is locked.
func (b *Bus) expireActive(q *messageQueue, k []byte) {
	q.overdue = append(bytes.Clone(k), 0)
	seq := lastNumber(k)
	if q.locked[seq] != nil {
		return
	}
	if m, p, ok := b.readMessage(q, seq); ok {
		b.expireMessage(q, m, p)
	}
}

// expireMessage removes an expired message or makes it a dead letter, depending on the entity.
func (b *Bus) expireMessage(q *messageQueue, m Message, p messageRef) {
	if q.entity.config.DeadLetterOnExpiry {
		b.moveToDeadLetters(q, m, p, ReasonExpired, "The message expired and was dead lettered.")
		return
	}
	b.removeMessage(q, p, time.Time{})
}

// recordDuplicate records the id of a message if the entity detects duplicates. If the id is already recorded, it
// returns the sequence number of the first message with this id, otherwise 0.
func (b *Bus) recordDuplicate(e *entity, m *Message) int64 {
	if e.config.DuplicateWindow == 0 {
		return 0
	}
	now, k := b.storedNow(), duplicateKey(e.main.id, m.ID)
	if v := b.journal.getValue(k); len(v) == 16 && readNumber(v) > now.UnixMilli() {
		return readNumber(v[8:])
	}
	until := now.Add(e.config.DuplicateWindow)
	b.journal.putKey(k, appendNumber(appendNumber(nil, until.UnixMilli()), e.main.last+1))
	b.journal.putKey(forgetKey(e.main.id, until, m.ID), []byte{})
	b.scheduleMaintenance(e.main, until)
	return 0
}

func (b *Bus) forgetDuplicate(q *messageQueue, k []byte) {
	b.journal.removeKey(k)
	id := string(k[6+8:])
	if v := b.journal.getValue(duplicateKey(q.id, id)); v != nil && readNumber(v) <= timeOf(k).UnixMilli() {
		b.journal.removeKey(duplicateKey(q.id, id))
	}
}
