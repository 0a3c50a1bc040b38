package bus

import (
	"container/list"
	"fmt"
	"time"
)

// A Receiver receives the messages of one queue, or of one session that it has locked.
type Receiver struct {
	bus     *Bus
	options ReceiverOptions
	session string

	// The lock of the bus guards these fields.
	lane   *deliveryLane
	credit int
	turn   *list.Element // element of the receiver in lane.ready; nil without credit
	closed bool
	until  time.Time // end of the session lock
	lock   *deadline // deadline of the session lock
}

// Receive starts a receiver for an entity without sessions. It delivers messages only after AddCredit.
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

// AddCredit allows n more deliveries. A negative n reduces the credit, to zero at most.
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

// Drain sets the credit to zero. After all earlier deliveries it calls done with the unused credit.
func (r *Receiver) Drain(done func(left int)) {
	b := r.bus
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	left := r.credit
	r.credit = 0
	r.leaveReady()
	b.replyCommitted(func(error) { done(left) })
}

// leaveReady removes the receiver from lane.ready, the list of receivers with credit.
func (r *Receiver) leaveReady() {
	if r.turn != nil {
		r.lane.ready.Remove(r.turn)
		r.turn = nil
	}
}

// Close ends the receiver. Without sessions, messages that it has locked stay locked until they are settled or the lock
// expires. A session is unlocked, and its messages do not change. Deliveries that are already queued may still arrive.
func (r *Receiver) Close() {
	b := r.bus
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	if !r.closed {
		b.leaveLane(r)
	}
}

// leaveLane removes a receiver from its lane, and unlocks its session.
func (b *Bus) leaveLane(r *Receiver) {
	r.closed = true
	r.credit = 0
	r.leaveReady()
	delete(r.lane.members, r)
	if r.lane.queue.hasSessions() {
		b.freeSession(r)
	}
}

// endReceiver ends a receiver and calls its Lost function with the reason.
func (b *Bus) endReceiver(r *Receiver, why error) {
	b.leaveLane(r)
	if r.options.Lost != nil {
		b.callbacks.addCall(func() { r.options.Lost(why) })
	}
}

// SessionID returns the id of the locked session.
func (r *Receiver) SessionID() string { return r.session }

// LockedUntil returns the end of the session lock.
func (r *Receiver) LockedUntil() time.Time {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	return r.until
}

// deliverMessage delivers a message to a receiver. It locks the message, or removes it in mode ReceiveAndDelete.
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
	b.callbacks.addCall(func() { r.options.Deliver(d) })
}

// endReceivers ends all receivers and all waiting session requests.
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
