package bus

import (
	"bytes"
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// DefaultSessionTimeout is how long a request for the next session waits.
	DefaultSessionTimeout = time.Minute
	// MaxSessionState is the limit of a session's state.
	MaxSessionState = 256 << 10
)

// A sessionWaiter waits for the next session with a message.
type sessionWaiter struct {
	queue    *queue
	options  ReceiverOptions
	done     func(*Receiver, error)
	turn     *list.Element
	deadline *deadline
}

// AcceptSession locks a session: the one asked for, even if it has no message,
// or the next one that has. It fails with ErrSessionLocked in the first case
// and with ErrTimeout in the second.
//
// cancel gives up waiting: done is then called with ErrTimeout, if it has not
// been called. Who no longer wants what done brings has to close it.
func (b *Bus) AcceptSession(path string, want SessionRequest, o ReceiverOptions, done func(*Receiver, error)) (cancel func()) {
	b.enter()
	defer b.leave()
	q, err := b.sessionQueue(path)
	switch {
	case err != nil:
	case want.ID != nil && q.holder(*want.ID) != nil:
		err = ErrSessionLocked
	case want.ID != nil && len(*want.ID) > maxID:
		err = fmt.Errorf("%w: a session id has at most %d bytes", ErrInvalid, maxID)
	case want.ID != nil:
		b.grant(q, *want.ID, o, done)
	default:
		w := &sessionWaiter{queue: q, options: o, done: done}
		w.turn = q.waiting.PushBack(w)
		w.deadline = b.schedule(b.clock.Now().Add(cmp.Or(want.Timeout, DefaultSessionTimeout)), func() { b.refuse(w, ErrTimeout) })
		b.grantSessions(q)
		return func() {
			b.enter()
			defer b.leave()
			b.refuse(w, ErrTimeout)
		}
	}
	if err != nil {
		b.reply(func(broken error) { done(nil, cmp.Or(broken, err)) })
	}
	return func() {}
}

// refuse ends a wait, unless it is over.
func (b *Bus) refuse(w *sessionWaiter, why error) {
	if b.leaveTurn(w) {
		b.outbox.add(func() { w.done(nil, why) })
	}
}

func (b *Bus) leaveTurn(w *sessionWaiter) bool {
	if w.turn == nil {
		return false
	}
	w.queue.waiting.Remove(w.turn)
	w.turn = nil
	b.cancel(w.deadline)
	return true
}

func (b *Bus) grant(q *queue, id string, o ReceiverOptions, done func(*Receiver, error)) {
	r := b.join(q, id, o)
	r.until = b.clock.Now().Add(q.entity.config.LockDuration)
	r.lock = b.schedule(r.until, func() { b.loseSession(r) })
	b.outbox.add(func() { done(r, nil) })
}

// grantSessions serves those who wait for the next session, in their order.
func (b *Bus) grantSessions(q *queue) {
	for q.waiting.Len() > 0 && b.journal.failure == nil {
		id, ok := b.nextSession(q)
		if !ok {
			return
		}
		w := q.waiting.Front().Value.(*sessionWaiter)
		b.leaveTurn(w)
		b.grant(q, id, w.options, w.done)
	}
}

// nextSession finds the free session with the oldest message that can be
// handed out. It passes over the held ones, which are as many as there are
// receivers.
func (b *Bus) nextSession(q *queue) (id string, found bool) {
	from, to := headKey(q.id, 0), endOfPrefix(key(tableHead, q.id, 0))
	for {
		var head []byte
		b.journal.scan(from, to, func(k, session []byte) bool {
			if q.lanes[string(session)] != nil {
				return true
			}
			head, id = bytes.Clone(k), string(session)
			return false
		})
		if head == nil {
			return "", false
		}
		seq := lastNumber(head)
		g := b.journal.waitsFor(messageKey(q.id, seq))
		if g == nil {
			m, p, ok := b.read(q, seq)
			if ok && !expired(&m, b.clock.Now()) {
				return id, true
			}
			if !ok {
				return "", false // a fault that the journal knows of
			}
			b.expire(q, m, p) // and the next message of the session is its head
			continue
		}
		g.queues[q] = struct{}{}
		from = headKey(q.id, seq+1)
	}
}

// freeSession gives back a session with its messages as they are. Those that
// expired meanwhile are left to the chores.
func (b *Bus) freeSession(r *Receiver) {
	b.cancel(r.lock)
	q, now := r.lane.queue, b.clock.Now()
	for k := range r.lane.locks {
		b.unlock(k)
		if !k.place.until.IsZero() && !k.place.until.After(now) {
			q.overdue = nil
			b.remind(q, now)
		}
	}
	delete(q.lanes, r.lane.name)
	b.grantSessions(q)
}

// loseSession ends a session whose lock expired: to its messages that is a
// delivery that failed.
func (b *Bus) loseSession(r *Receiver) {
	for _, k := range r.lane.inOrder() {
		b.fail(k)
	}
	b.lose(r, ErrSessionLockLost)
}

func (l *lane) inOrder() []*lock {
	return slices.SortedFunc(maps.Keys(l.locks), func(a, b *lock) int { return cmp.Compare(a.place.seq, b.place.seq) })
}

func (q *queue) holder(session string) *Receiver {
	if l := q.lanes[session]; l != nil {
		for r := range l.members {
			return r
		}
	}
	return nil
}

func (b *Bus) sessionQueue(path string) (*queue, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	q, err := b.receivable(path)
	if err == nil && !q.hasSessions() {
		err = fmt.Errorf("%w: the entity does not require sessions; create a receiver without one", ErrNotAllowed)
	}
	return q, err
}

func (b *Bus) heldSession(path, id string) (*queue, *Receiver, error) {
	q, err := b.sessionQueue(path)
	if err != nil {
		return nil, nil, err
	}
	r := q.holder(id)
	if r == nil {
		return nil, nil, ErrSessionLockLost
	}
	return q, r, nil
}

// RenewSession locks a session for another lock duration from now on.
func (b *Bus) RenewSession(path, id string, done func(time.Time, error)) {
	var until time.Time
	b.do(func(err error) { done(until, err) }, func() error {
		q, r, err := b.heldSession(path, id)
		if err != nil {
			return err
		}
		r.until = b.clock.Now().Add(q.entity.config.LockDuration)
		b.move(r.lock, r.until)
		until = r.until
		return nil
	})
}

// SessionState returns the state of a session, nil if it has none.
func (b *Bus) SessionState(path, id string, done func([]byte, error)) {
	var state []byte
	b.do(func(err error) { done(state, err) }, func() error {
		q, _, err := b.heldSession(path, id)
		if err != nil {
			return err
		}
		if v := b.journal.get(stateKey(q.id, id)); len(v) > 8 {
			state = v[8:]
		}
		return nil
	})
}

// SetSessionState keeps a state with a session; an empty one is none.
func (b *Bus) SetSessionState(path, id string, state []byte, done func(error)) {
	b.do(done, func() error {
		q, _, err := b.heldSession(path, id)
		switch {
		case err != nil:
			return err
		case len(state) > MaxSessionState:
			return fmt.Errorf("%w: a session state has at most %d bytes", ErrTooLarge, MaxSessionState)
		case len(state) == 0:
			b.journal.remove(stateKey(q.id, id))
		default:
			b.journal.put(stateKey(q.id, id), append(appendNumber(nil, b.clock.Now().UnixMilli()), state...))
		}
		return nil
	})
}
