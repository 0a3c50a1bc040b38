package bus

import (
	"fmt"
	"time"
)

// A lock is the right to settle one message. Locks live in memory only: after
// a restart all messages are free, with the counts they had.
type lock struct {
	token    LockToken
	queue    *queue
	lane     *lane // nil: the message is deferred and belongs to no lane
	place    place
	until    time.Time
	deadline *deadline // nil: the lock lives as long as that of its session
}

func (b *Bus) lock(q *queue, l *lane, p place) *lock {
	k := &lock{token: b.newToken(), queue: q, lane: l, place: p}
	b.locks[k.token] = k
	q.locked[p.seq] = k
	if l != nil {
		l.locks[k] = struct{}{}
	}
	if !q.hasSessions() {
		k.until = b.clock.Now().Add(q.entity.config.LockDuration)
		k.deadline = b.schedule(k.until, func() { b.fail(k) })
	}
	return k
}

// unlock forgets a lock, and leaves it to the caller what becomes of the
// message.
func (b *Bus) unlock(k *lock) {
	b.cancel(k.deadline)
	delete(b.locks, k.token)
	delete(k.queue.locked, k.place.seq)
	if k.lane != nil {
		delete(k.lane.locks, k)
	}
}

// fail gives back a message whose lock expired: that counts as a delivery.
func (b *Bus) fail(k *lock) {
	if m, ok := b.open(k); ok {
		b.abandon(k, m)
	}
}

// open ends a lock and reads its message.
func (b *Bus) open(k *lock) (Message, bool) {
	b.unlock(k)
	m, p, ok := b.read(k.queue, k.place.seq)
	if ok {
		k.place.size = p.size
	}
	return m, ok
}

// heldLocks finds all tokens in a queue, or none.
func (b *Bus) heldLocks(path string, tokens []LockToken) ([]*lock, error) {
	q, err := b.find(path)
	if err != nil {
		return nil, err
	}
	held := make([]*lock, len(tokens))
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

// RenewLocks locks messages for another lock duration from now on, all of them
// or none.
func (b *Bus) RenewLocks(path string, tokens []LockToken, done func([]time.Time, error)) {
	var until []time.Time
	b.do(func(err error) { done(until, err) }, func() error {
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
			b.move(k.deadline, k.until)
			until = append(until, k.until)
		}
		return nil
	})
}
