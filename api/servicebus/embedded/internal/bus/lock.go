package bus

import (
	"fmt"
	"time"
)

// A messageLock is the right to settle one message. Locks exist only in memory, so a restart releases them. Delivery
// counts are stored.
type messageLock struct {
	token    LockToken
	queue    *messageQueue
	lane     *deliveryLane // nil if the message is deferred, in a queue without sessions
	place    messageRef
	until    time.Time
	deadline *deadline // nil if the lock ends together with the lock of the session
}

func (b *Bus) lockMessage(q *messageQueue, l *deliveryLane, p messageRef) *messageLock {
	k := &messageLock{token: b.newToken(), queue: q, lane: l, place: p}
	b.locks[k.token] = k
	q.locked[p.seq] = k
	if l != nil {
		l.locks[k] = struct{}{}
	}
	if !q.hasSessions() {
		k.until = b.clock.Now().Add(q.entity.config.LockDuration)
		k.deadline = b.addDeadline(k.until, func() { b.expireLock(k) })
	}
	return k
}

// removeLock removes a lock, but does not change the message.
func (b *Bus) removeLock(k *messageLock) {
	b.cancelDeadline(k.deadline)
	delete(b.locks, k.token)
	delete(k.queue.locked, k.place.seq)
	if k.lane != nil {
		delete(k.lane.locks, k)
	}
}

// expireLock removes an expired lock and returns the message to its lane. The delivery counts as failed.
func (b *Bus) expireLock(k *messageLock) {
	if m, ok := b.unlockAndRead(k); ok {
		b.abandonMessage(k, m)
	}
}

// unlockAndRead removes a lock and returns its message. It returns false if the message no longer exists.
func (b *Bus) unlockAndRead(k *messageLock) (Message, bool) {
	b.removeLock(k)
	m, p, ok := b.readMessage(k.queue, k.place.seq)
	if ok {
		k.place.size = p.size
	}
	return m, ok
}

// heldLocks returns the locks of all tokens, or an error if one of the locks no longer exists.
func (b *Bus) heldLocks(path string, tokens []LockToken) ([]*messageLock, error) {
	q, err := b.findQueue(path)
	if err != nil {
		return nil, err
	}
	held := make([]*messageLock, len(tokens))
	seen := make(map[LockToken]bool, len(tokens))
	for i, t := range tokens {
		k := b.locks[t]
		if k == nil || k.queue != q || seen[t] {
			return nil, ErrLockLost
		}
		held[i], seen[t] = k, true
	}
	return held, nil
}

// RenewLocks renews the locks of all tokens; the lock duration of the entity starts again now. If one of the locks no
// longer exists, RenewLocks fails and renews none.
func (b *Bus) RenewLocks(path string, tokens []LockToken, done func([]time.Time, error)) {
	var until []time.Time
	b.runOperation(func(err error) { done(until, err) }, func() error {
		held, err := b.heldLocks(path, tokens)
		if err != nil {
			return err
		}
		for _, k := range held {
			if k.deadline == nil {
				return fmt.Errorf("%w: the message is locked with its session; renew that", ErrNotAllowed)
			}
		}
		for _, k := range held {
			k.until = b.clock.Now().Add(k.queue.entity.config.LockDuration)
			b.moveDeadline(k.deadline, k.until)
			until = append(until, k.until)
		}
		return nil
	})
}
