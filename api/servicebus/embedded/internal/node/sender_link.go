package node

import (
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

const (
	// aheadMessages and aheadBytes limit how many messages a link requests from the bus at a time, because delivered
	// messages stay in memory until the client reads them.
	aheadMessages, aheadBytes = 64, 1 << 20

	// firstMessages is the number of messages that a link requests before it knows their size.
	firstMessages = 4

	// sessionTimeout is how long a client waits for a free session by default.
	sessionTimeout = time.Minute
)

// A senderLink sends messages of the bus to a client.
type senderLink struct {
	peer *peer
	link *server.Link
	path string
	mode bus.Mode
	// session is set if the link receives the messages of one session. The lock is then on the session, not on each
	// message.
	session *string

	mu          sync.Mutex
	from        *bus.Receiver
	window      int            // window is the number of messages to request, estimated from the size of recent messages
	requested   int            // requested is the number of messages that the bus was asked for and has not delivered yet
	held        []bus.Delivery // held contains the deliveries that wait for credit or room
	draining    bool
	busDraining bool // busDraining is true while the bus drains its receiver
	gone        bool
}

// attachReceiver accepts a link on which a client receives messages from an entity.
func (p *peer) attachReceiver(l *server.Link, path string) {
	if !p.requireRight(l, path, sas.Listen) {
		return
	}
	o := &senderLink{peer: p, link: l, path: path, window: firstMessages}
	if l.Wants.SenderSettle != nil && *l.Wants.SenderSettle == amqp.SenderSettled {
		o.mode = bus.ReceiveAndDelete
	}
	l.WhenGone(o.closeReceiver)
	filter, wantsSession := sessionFilterOf(l.Wants)
	p.namespace.ensureEntity(path, wantsSession, func(err error) {
		e, lookup := p.namespace.Bus.Entity(entityOf(path))
		if err == nil {
			err = lookup
		}
		if err == nil {
			err = checkReceivable(e, path, wantsSession)
		}
		switch {
		case err != nil:
			l.Refuse(entityRefusal(path, err))
		case wantsSession:
			o.acceptSession(filter)
		default:
			o.acceptReceiver()
		}
	})
}

// checkReceivable returns an error if a client cannot receive from the entity as requested, with or without a session.
func checkReceivable(e bus.Entity, path string, wantsSession bool) error {
	sessions := e.RequiresSession && strings.EqualFold(entityOf(path), path) // dead letters have no sessions
	switch {
	case e.Kind == bus.Topic:
		return amqp.Errorf(amqp.NotAllowed, "nothing can be received from a topic; receive from one of its subscriptions")
	case e.Status == bus.StatusDisabled || e.Status == bus.StatusReceiveDisabled:
		return bus.ErrDisabled
	case sessions && !wantsSession:
		return amqp.Errorf(amqp.NotAllowed, "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.")
	case !sessions && wantsSession:
		return amqp.Errorf(amqp.NotAllowed, "A sessionful message receiver cannot be created on an entity that does not require sessions.")
	}
	return nil
}

func (o *senderLink) receiverOptions() bus.ReceiverOptions {
	return bus.ReceiverOptions{Mode: o.mode, Deliver: o.holdDelivery, Lost: o.endReceiving}
}

func (o *senderLink) acceptReceiver() {
	r, err := o.peer.namespace.Bus.Receive(o.path, o.receiverOptions())
	if err != nil {
		o.link.Refuse(entityRefusal(o.path, err))
		return
	}
	if o.beginReceiving(r) {
		o.link.Send(server.Terms{}, o)
	}
}

// beginReceiving stores the receiver, or closes it if the link has ended. It reports whether
// the link continues.
func (o *senderLink) beginReceiving(r *bus.Receiver) bool {
	o.mu.Lock()
	gone := o.gone
	o.from = r
	o.mu.Unlock()
	if gone {
		r.Close()
	}
	return !gone
}

// closeReceiver closes the receiver and releases its session. Messages that were not sent to the client return to the
// bus; messages that were sent stay locked.
func (o *senderLink) closeReceiver() {
	o.mu.Lock()
	o.gone = true
	from, held, session := o.from, o.held, o.session
	o.held = nil
	o.mu.Unlock()
	for _, d := range held {
		o.giveBack(d)
	}
	if from != nil {
		from.Close()
	}
	if session != nil {
		o.peer.mu.Lock()
		delete(o.peer.sessions, o.link.Name)
		o.peer.mu.Unlock()
	}
}

func (o *senderLink) giveBack(d bus.Delivery) {
	if o.mode == bus.PeekLock {
		o.peer.namespace.Bus.Settle(o.path, []bus.LockToken{d.Token}, bus.Settlement{Outcome: bus.Release}, func(error) {})
	}
}

// endReceiving detaches the link. The bus calls it after it has closed the receiver.
func (o *senderLink) endReceiving(err error) {
	e, _ := conditionOf(err)
	o.link.Detach(e)
}

// holdDelivery stores a message that the bus has delivered until the link can send it.
func (o *senderLink) holdDelivery(d bus.Delivery) {
	o.mu.Lock()
	o.requested--
	gone := o.gone
	if !gone {
		o.held = append(o.held, d)
	}
	o.mu.Unlock()
	if gone {
		o.giveBack(d)
		return
	}
	o.sendAndRequest()
}

// sendAndRequest sends held messages and requests more messages from the bus. It does not hold o.mu during the request,
// because the bus may deliver messages within the call.
func (o *senderLink) sendAndRequest() {
	o.mu.Lock()
	o.sendHeld()
	want, drain := o.nextRequest()
	from := o.from
	o.mu.Unlock()
	if want > 0 {
		from.AddCredit(want)
	}
	if drain {
		from.Drain(o.recordDrained)
	}
}

// sendHeld sends held messages while the link has credit. The caller must hold o.mu.
func (o *senderLink) sendHeld() {
	for len(o.held) > 0 {
		d := o.held[0]
		until := d.LockedUntil
		if o.session != nil {
			until = time.Time{}
		}
		payload, err := encodeMessage(&d.Message, d.Token, until)
		if err != nil {
			o.peer.namespace.Logger.Error("a stored message cannot be read", "entity", o.path, "sequence_number", d.SequenceNumber, "error", err)
			o.held = o.held[1:]
			continue
		}
		m := server.Outgoing{Tag: deliveryTag(d.Token), Settled: o.mode == bus.ReceiveAndDelete, Payload: payload, Note: d.Token}
		if !o.link.Transfer(m) {
			return
		}
		o.held = o.held[1:]
		o.window = max(1, min(2*o.window, aheadMessages, aheadBytes/len(payload)))
	}
	o.held = nil
}

// nextRequest returns how many messages to request from the bus, and whether to drain the bus afterwards. The caller
// must hold o.mu.
func (o *senderLink) nextRequest() (want int, drain bool) {
	if o.gone || o.busDraining || o.from == nil {
		return 0, false
	}
	want = min(o.link.Room()-len(o.held), o.window) - o.requested
	if want <= 0 || o.requested > o.window/2 && !o.draining {
		want = 0
	}
	o.requested += want
	// if the link has credit and nothing is requested, the link has no room, and Ready continues the drain
	if o.draining && (o.requested > 0 || o.link.Credit() == 0) {
		o.busDraining, drain = true, true
	}
	return want, drain
}

// recordDrained records that the bus has finished a drain. left is the number of requested messages that the bus did
// not deliver.
func (o *senderLink) recordDrained(left int) {
	o.mu.Lock()
	o.busDraining = false
	o.requested -= left
	if left > 0 || o.link.Credit() == 0 {
		o.draining = false
		o.link.Drained()
	}
	o.mu.Unlock()
	o.sendAndRequest()
}

// Ready implements server.Sender.
func (o *senderLink) Ready(drain bool) {
	o.mu.Lock()
	o.draining = o.draining || drain
	o.mu.Unlock()
	o.sendAndRequest()
}

// Disposed implements server.Sender.
func (o *senderLink) Disposed(s *server.Sent, state any, settled bool) {
	token, _ := s.Note.(bus.LockToken)
	how, answer := settlementOf(state)
	o.peer.namespace.Bus.Settle(o.path, []bus.LockToken{token}, how, func(err error) {
		if err != nil {
			answer = rejectedState(err)
		}
		if !settled {
			s.Settle(answer)
		}
		o.sendAndRequest()
	})
}
