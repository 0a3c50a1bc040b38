package bus

import (
	"container/list"
	"fmt"
	"time"
)

// A Receiver takes messages of one queue, or of one session that it holds.
type Receiver struct {
	bus     *Bus
	options ReceiverOptions
	session string

	// Guarded by the lock of the bus.
	lane   *deliveryLane
	credit int
	turn   *list.Element // its place among those with credit
	closed bool
	until  time.Time // a session's lock
	lock   *deadline // of a session
}

// Receive starts a receiver of an entity without sessions. It gets nothing
// before it has credit.
func (b *Bus) Receive(path string, o ReceiverOptions) (*Receiver, error) {
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	if err := b.checkUsable(); err != nil {
		return nil, err
	}
	q, err := b.findReceivable(path)
	if err != nil {
		return nil, err
	}
	if q.hasSessions() {
		return nil, fmt.Errorf("%w: it is not possible for an entity that requires sessions to create a non-sessionful message receiver", ErrNotAllowed)
	}
	return b.addReceiver(q, "", o), nil
}

func (b *Bus) addReceiver(q *messageQueue, name string, o ReceiverOptions) *Receiver {
	l := b.openLane(q, name)
	r := &Receiver{bus: b, options: o, session: name, lane: l}
	l.members[r] = struct{}{}
	return r
}

// AddCredit allows n more messages to be handed out. A negative n takes back
// what is left of the credit, at most.
func (r *Receiver) AddCredit(n int) {
	b := r.bus
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	if r.closed || b.checkUsable() != nil {
		return
	}
	r.credit = max(0, r.credit+n)
	switch {
	case r.credit == 0:
		r.leaveReady()
	case r.turn == nil:
		r.turn = r.lane.ready.PushBack(r)
	}
	b.handOut(r.lane)
}

// Drain takes back the credit and says how much was left, after all that was
// handed out before.
func (r *Receiver) Drain(done func(left int)) {
	b := r.bus
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	left := r.credit
	r.credit = 0
	r.leaveReady()
	b.replyCommitted(func(error) { done(left) })
}

// leaveReady takes the receiver out of the turn.
func (r *Receiver) leaveReady() {
	if r.turn != nil {
		r.lane.ready.Remove(r.turn)
		r.turn = nil
	}
}

// Close ends the receiver. What it has locked of a queue stays locked until it
// is settled or the lock expires; a session is free again, with its messages
// as they were. Deliveries already on their way may still arrive.
func (r *Receiver) Close() {
	b := r.bus
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	if !r.closed {
		b.leaveLane(r)
	}
}

// leaveLane takes a receiver from its lane, and gives back a session.
func (b *Bus) leaveLane(r *Receiver) {
	r.closed = true
	r.credit = 0
	r.leaveReady()
	delete(r.lane.members, r)
	if r.lane.queue.hasSessions() {
		b.freeSession(r)
	}
}

// endReceiver ends a receiver that did not ask for it.
func (b *Bus) endReceiver(r *Receiver, why error) {
	b.leaveLane(r)
	if r.options.Lost != nil {
		b.outbox.addCall(func() { r.options.Lost(why) })
	}
}

// SessionID returns the id of the session that is held.
func (r *Receiver) SessionID() string { return r.session }

// LockedUntil returns when the lock of the session ends unless it is renewed.
func (r *Receiver) LockedUntil() time.Time {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	return r.until
}

// deliverMessage gives a message to a receiver: locked, or removed before it goes out.
func (b *Bus) deliverMessage(r *Receiver, m Message, p messageRef) {
	if r.options.Mode == ReceiveAndDelete {
		b.removeMessage(r.lane.queue, p, time.Time{})
		b.replyCommitted(func(broken error) {
			if broken == nil {
				r.options.Deliver(Delivery{Message: m})
			}
		})
		return
	}
	k := b.lockMessage(r.lane.queue, r.lane, p)
	d := Delivery{Message: m, Token: k.token, LockedUntil: k.until}
	if r.lane.queue.hasSessions() {
		d.LockedUntil = r.until
	}
	b.outbox.addCall(func() { r.options.Deliver(d) })
}

// endReceivers tells all who wait for something that nothing more will come.
func (b *Bus) endReceivers(why error) {
	for _, e := range b.entities {
		for _, q := range e.listQueues() {
			b.endReceiversOf(q, why)
		}
	}
}

func (b *Bus) endReceiversOf(q *messageQueue, why error) {
	for el := q.waiting.Front(); el != nil; el = q.waiting.Front() {
		b.refuseWaiter(el.Value.(*sessionWaiter), why)
	}
	for _, l := range q.lanes {
		for r := range l.members {
			b.endReceiver(r, why)
		}
	}
}
