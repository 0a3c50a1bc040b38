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
	// DefaultSessionTimeout is the default timeout of a request for the next session.
	DefaultSessionTimeout = time.Minute
	// MaxSessionState is the maximum size of a session state, in bytes.
	MaxSessionState = 256 << 10
)

// A sessionWaiter is a request for the next session that has a message.
type sessionWaiter struct {
	queue    *messageQueue
	options  ReceiverOptions
	done     func(*Receiver, error)
	turn     *list.Element
	deadline *deadline
}

// AcceptSession locks a session: either the session that want names, even without messages, or the next session with a
// message. It fails with ErrSessionLocked if the named session is locked, and with ErrTimeout if no session became
// available in time.
//
// cancel ends the wait: it calls done with ErrTimeout unless done was already called. The caller must close the
// Receiver.
func (b *Bus) AcceptSession(path string, want SessionRequest, o ReceiverOptions, done func(*Receiver, error)) (cancel func()) {
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	q, err := b.sessionQueue(path)
	switch {
	case err != nil:
	case want.ID != nil && q.holderOf(*want.ID) != nil:
		err = ErrSessionLocked
	case want.ID != nil && len(*want.ID) > maxID:
		err = fmt.Errorf("%w: a session id has at most %d bytes", ErrInvalid, maxID)
	case want.ID != nil:
		b.grantSession(q, *want.ID, o, done)
	default:
		w := &sessionWaiter{queue: q, options: o, done: done}
		w.turn = q.waiting.PushBack(w)
		w.deadline = b.addDeadline(b.clock.Now().Add(cmp.Or(want.Timeout, DefaultSessionTimeout)), func() { b.refuseWaiter(w, ErrTimeout) })
		b.grantSessions(q)
		return func() {
			b.lockAndCatchUp()
			defer b.scheduleAndUnlock()
			b.refuseWaiter(w, ErrTimeout)
		}
	}
	if err != nil {
		b.replyCommitted(func(broken error) { done(nil, cmp.Or(broken, err)) })
	}
	return func() {}
}

// refuseWaiter ends a waiting request with an error, unless the request has already ended.
func (b *Bus) refuseWaiter(w *sessionWaiter, why error) {
	if b.removeWaiter(w) {
		b.callbacks.addCall(func() { w.done(nil, why) })
	}
}

func (b *Bus) removeWaiter(w *sessionWaiter) bool {
	if w.turn == nil {
		return false
	}
	w.queue.waiting.Remove(w.turn)
	w.turn = nil
	b.cancelDeadline(w.deadline)
	return true
}

func (b *Bus) grantSession(q *messageQueue, id string, o ReceiverOptions, done func(*Receiver, error)) {
	r := b.addReceiver(q, id, o)
	r.until = b.clock.Now().Add(q.entity.config.LockDuration)
	r.lock = b.addDeadline(r.until, func() { b.loseSession(r) })
	b.callbacks.addCall(func() { done(r, nil) })
}

// grantSessions grants unlocked sessions to waiting requests, oldest request first.
func (b *Bus) grantSessions(q *messageQueue) {
	for q.waiting.Len() > 0 && b.journal.failure == nil {
		id, ok := b.nextSession(q)
		if !ok {
			return
		}
		w := q.waiting.Front().Value.(*sessionWaiter)
		b.removeWaiter(w)
		b.grantSession(q, id, w.options, w.done)
	}
}

// nextSession returns the unlocked session with the oldest deliverable message. It skips locked sessions, which are
// few, because each has a receiver.
func (b *Bus) nextSession(q *messageQueue) (id string, found bool) {
	from, to := headKey(q.id, 0), endOfPrefix(newKey(tableHead, q.id, 0))
	for {
		var head []byte
		b.journal.scanRange(from, to, func(k, session []byte) bool {
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
		g := b.journal.pendingGeneration(messageKey(q.id, seq))
		if g == nil {
			m, p, ok := b.readMessage(q, seq)
			if ok && !hasExpired(&m, b.clock.Now()) {
				return id, true
			}
			if !ok {
				return "", false // the journal has recorded the error
			}
			b.expireMessage(q, m, p) // expireMessage removes m, so the session's next message becomes its first
			continue
		}
		g.queues[q] = struct{}{}
		from = headKey(q.id, seq+1)
	}
}

// freeSession unlocks a session and does not change its messages. Maintenance removes the expired ones.
func (b *Bus) freeSession(r *Receiver) {
	b.cancelDeadline(r.lock)
	q, now := r.lane.queue, b.clock.Now()
	for k := range r.lane.locks {
		b.removeLock(k)
		if !k.place.until.IsZero() && !k.place.until.After(now) {
			q.overdue = nil
			b.scheduleMaintenance(q, now)
		}
	}
	delete(q.lanes, r.lane.name)
	b.grantSessions(q)
}

// loseSession ends the receiver of a session whose lock has expired. For each locked message of the session, this
// counts as a failed delivery.
func (b *Bus) loseSession(r *Receiver) {
	for _, k := range r.lane.sortedLocks() {
		b.expireLock(k)
	}
	b.endReceiver(r, ErrSessionLockLost)
}

func (l *deliveryLane) sortedLocks() []*messageLock {
	return slices.SortedFunc(maps.Keys(l.locks), func(a, b *messageLock) int { return cmp.Compare(a.place.seq, b.place.seq) })
}

func (q *messageQueue) holderOf(session string) *Receiver {
	if l := q.lanes[session]; l != nil {
		for r := range l.members {
			return r
		}
	}
	return nil
}

func (b *Bus) sessionQueue(path string) (*messageQueue, error) {
	if err := b.checkUsable(); err != nil {
		return nil, err
	}
	q, err := b.findReceivable(path)
	if err == nil && !q.hasSessions() {
		err = fmt.Errorf("%w: the entity does not require sessions; create a receiver without one", ErrNotAllowed)
	}
	return q, err
}

func (b *Bus) heldSession(path, id string) (*messageQueue, *Receiver, error) {
	q, err := b.sessionQueue(path)
	if err != nil {
		return nil, nil, err
	}
	r := q.holderOf(id)
	if r == nil {
		return nil, nil, ErrSessionLockLost
	}
	return q, r, nil
}

// RenewSession renews the lock of a session; the lock duration of the entity starts again now.
func (b *Bus) RenewSession(path, id string, done func(time.Time, error)) {
	var until time.Time
	b.runOperation(func(err error) { done(until, err) }, func() error {
		q, r, err := b.heldSession(path, id)
		if err != nil {
			return err
		}
		r.until = b.clock.Now().Add(q.entity.config.LockDuration)
		b.moveDeadline(r.lock, r.until)
		until = r.until
		return nil
	})
}

// SessionState returns the state of a session, or nil if it has none.
func (b *Bus) SessionState(path, id string, done func([]byte, error)) {
	var state []byte
	b.runOperation(func(err error) { done(state, err) }, func() error {
		q, _, err := b.heldSession(path, id)
		if err != nil {
			return err
		}
		if v := b.journal.getValue(stateKey(q.id, id)); len(v) > 8 {
			state = v[8:]
		}
		return nil
	})
}

// SetSessionState sets the state of a session. An empty state removes the stored state.
func (b *Bus) SetSessionState(path, id string, state []byte, done func(error)) {
	b.runOperation(done, func() error {
		q, _, err := b.heldSession(path, id)
		switch {
		case err != nil:
			return err
		case len(state) > MaxSessionState:
			return fmt.Errorf("%w: a session state has at most %d bytes", ErrTooLarge, MaxSessionState)
		case len(state) == 0:
			b.journal.removeKey(stateKey(q.id, id))
		default:
			b.journal.putKey(stateKey(q.id, id), append(appendNumber(nil, b.clock.Now().UnixMilli()), state...))
		}
		return nil
	})
}
