package bus

import (
	"container/heap"
	"container/list"
	"time"
)

// A deliveryLane delivers, in order, the messages of one locked session or of a queue without sessions. The store has
// the order of the messages. Memory has the position of the lane, the returned messages before the position, and the
// receivers with credit.
type deliveryLane struct {
	queue    *messageQueue
	name     string
	cursor   int64     // lowest sequence number that the lane has not delivered yet
	returned sequences // unlocked messages before the cursor
	locks    map[*messageLock]struct{}
	ready    list.List // list of *Receiver with credit; the receiver that has waited longest is first
	members  map[*Receiver]struct{}
}

func (b *Bus) openLane(q *messageQueue, name string) *deliveryLane {
	l := q.lanes[name]
	if l == nil {
		l = &deliveryLane{queue: q, name: name, locks: map[*messageLock]struct{}{}, members: map[*Receiver]struct{}{}}
		q.lanes[name] = l
	}
	return l
}

// handOut delivers messages until the lane has no more messages or no receiver has credit.
func (b *Bus) handOut(l *deliveryLane) {
	for b.journal.failure == nil {
		front := l.ready.Front()
		if front == nil {
			return
		}
		m, p, ok := b.nextFree(l)
		if !ok {
			return
		}
		r := front.Value.(*Receiver)
		l.ready.Remove(front)
		r.turn = nil
		if r.credit--; r.credit > 0 {
			r.turn = l.ready.PushBack(r)
		}
		b.deliverMessage(r, m, p)
	}
}

// nextFree returns the next unlocked message of a lane, skipping expired messages. A message that is not committed yet
// blocks all later messages.
func (b *Bus) nextFree(l *deliveryLane) (Message, messageRef, bool) {
	for b.journal.failure == nil {
		seq, again := int64(0), len(l.returned) > 0
		if again {
			seq = l.returned[0]
		} else {
			seq = b.nextOf(l.queue, l.name, l.cursor)
		}
		if seq == 0 {
			return Message{}, messageRef{}, false
		}
		if g := b.journal.pendingGeneration(messageKey(l.queue.id, seq)); g != nil && b.journal.getValue(messageKey(l.queue.id, seq)) != nil {
			g.lanes[l] = struct{}{}
			return Message{}, messageRef{}, false
		}
		if again {
			heap.Pop(&l.returned)
		} else {
			l.cursor = seq + 1
		}
		m, p, there := b.readMessage(l.queue, seq)
		switch {
		case !there || m.State != Active: // the message expired after it was returned
		case l.queue.locked[seq] != nil: // a receiver has locked the message by its number; the message returns to the lane if it is not settled
		case hasExpired(&m, b.clock.Now()):
			b.expireMessage(l.queue, m, p)
		default:
			return m, p, true
		}
	}
	return Message{}, messageRef{}, false
}

// giveBack returns a message to its lane.
func (b *Bus) giveBack(l *deliveryLane, seq int64) {
	heap.Push(&l.returned, seq)
	b.handOut(l)
}

func hasExpired(m *Message, now time.Time) bool {
	return !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now)
}

// sequences is a heap of sequence numbers, with the lowest first.
type sequences []int64

func (s sequences) Len() int           { return len(s) }
func (s sequences) Less(i, j int) bool { return s[i] < s[j] }
func (s sequences) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sequences) Push(x any)        { *s = append(*s, x.(int64)) }

func (s *sequences) Pop() any {
	last := len(*s) - 1
	n := (*s)[last]
	*s = (*s)[:last]
	return n
}
