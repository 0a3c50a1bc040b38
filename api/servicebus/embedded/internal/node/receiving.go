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
	// askAhead and askBytes bound how much a link asks the bus for at a time.
	// What the bus has handed out is in memory until the client takes it.
	askAhead, askBytes = 64, 1 << 20

	// askFirst is how much it asks for while the size of messages is unknown.
	askFirst = 4

	// sessionPatience is how long a client waits for a session unless it says.
	sessionPatience = time.Minute
)

// An outlet brings messages of the bus to a client.
type outlet struct {
	peer *peer
	link *server.Link
	path string
	mode bus.Mode
	// session is set when the messages are those of one session, which has
	// the lock in place of each message.
	session *string

	mu       sync.Mutex
	from     *bus.Receiver
	window   int            // how much to ask for, by the size of what came last
	asked    int            // of the bus, and not here yet
	held     []bus.Delivery // here, but the client takes no more at the moment
	draining bool
	asking   bool // a drain of the bus is under way
	gone     bool
}

// attachReceiver accepts a link on which a client receives from an entity.
func (p *peer) attachReceiver(l *server.Link, path string) {
	if !p.allowed(l, path, sas.Listen) {
		return
	}
	o := &outlet{peer: p, link: l, path: path, window: askFirst}
	if l.Wants.SenderSettle != nil && *l.Wants.SenderSettle == amqp.SenderSettled {
		o.mode = bus.ReceiveAndDelete
	}
	l.WhenGone(o.close)
	filter, wantsSession := sessionFilterOf(l.Wants)
	p.namespace.ensure(path, wantsSession, func(err error) {
		e, lookup := p.namespace.Bus.Entity(entityOf(path))
		if err == nil {
			err = lookup
		}
		if err == nil {
			err = receivable(e, path, wantsSession)
		}
		switch {
		case err != nil:
			l.Refuse(entityRefusal(path, err))
		case wantsSession:
			o.acceptSession(filter)
		default:
			o.accept()
		}
	})
}

// receivable says why nothing can be received in the way that is asked for.
func receivable(e bus.Entity, path string, wantsSession bool) error {
	sessions := e.RequiresSession && strings.EqualFold(entityOf(path), path) // dead letters have none
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

func (o *outlet) options() bus.ReceiverOptions {
	return bus.ReceiverOptions{Mode: o.mode, Deliver: o.deliver, Lost: o.lost}
}

func (o *outlet) accept() {
	r, err := o.peer.namespace.Bus.Receive(o.path, o.options())
	if err != nil {
		o.link.Refuse(entityRefusal(o.path, err))
		return
	}
	if o.begin(r) {
		o.link.Send(server.Terms{}, o)
	}
}

// begin takes the receiver, and gives it back if nobody waits for it any more.
func (o *outlet) begin(r *bus.Receiver) bool {
	o.mu.Lock()
	gone := o.gone
	o.from = r
	o.mu.Unlock()
	if gone {
		r.Close()
	}
	return !gone
}

// close gives back what the client has not got. A message whose lock it holds
// stays locked; a session does not.
func (o *outlet) close() {
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

func (o *outlet) giveBack(d bus.Delivery) {
	if o.mode == bus.PeekLock {
		o.peer.namespace.Bus.Settle(o.path, []bus.LockToken{d.Token}, bus.Settlement{Outcome: bus.Release}, func(error) {})
	}
}

// lost is called by the bus when nothing more comes.
func (o *outlet) lost(err error) {
	e, _ := refusal(err)
	o.link.Detach(e)
}

// deliver is called by the bus with a message that was asked for.
func (o *outlet) deliver(d bus.Delivery) {
	o.mu.Lock()
	o.asked--
	gone := o.gone
	if !gone {
		o.held = append(o.held, d)
	}
	o.mu.Unlock()
	if gone {
		o.giveBack(d)
		return
	}
	o.pump()
}

// pump sends what is held, and asks the bus for more. The bus may answer
// before its method returns, so it is called with o.mu free.
func (o *outlet) pump() {
	o.mu.Lock()
	o.send()
	want, drain := o.next()
	from := o.from
	o.mu.Unlock()
	if want > 0 {
		from.AddCredit(want)
	}
	if drain {
		from.Drain(o.drained)
	}
}

// send sends what is held, as far as there is credit. The caller holds o.mu.
func (o *outlet) send() {
	for len(o.held) > 0 {
		d := o.held[0]
		until := d.LockedUntil
		if o.session != nil {
			until = time.Time{}
		}
		payload, err := outgoing(&d.Message, d.Token, until)
		if err != nil {
			o.peer.namespace.Logger.Error("a stored message cannot be read", "entity", o.path, "sequence_number", d.SequenceNumber, "error", err)
			o.held = o.held[1:]
			continue
		}
		m := server.Outgoing{Tag: tag(d.Token), Settled: o.mode == bus.ReceiveAndDelete, Payload: payload, Note: d.Token}
		if !o.link.Transfer(m) {
			return
		}
		o.held = o.held[1:]
		o.window = max(1, min(2*o.window, askAhead, askBytes/len(payload)))
	}
	o.held = nil
}

// next says how much to ask the bus for, and whether to take back then what it
// does not have. The caller holds o.mu.
func (o *outlet) next() (want int, drain bool) {
	if o.gone || o.asking || o.from == nil {
		return 0, false
	}
	want = min(o.link.Room()-len(o.held), o.window) - o.asked
	if want <= 0 || o.asked > o.window/2 && !o.draining {
		want = 0
	}
	o.asked += want
	if o.draining && (o.asked > 0 || o.link.Credit() == 0) { // else there is no room: Ready tells when there is
		o.asking, drain = true, true
	}
	return want, drain
}

// drained is called by the bus with what it could not use of what was asked.
func (o *outlet) drained(left int) {
	o.mu.Lock()
	o.asking = false
	o.asked -= left
	if left > 0 || o.link.Credit() == 0 {
		o.draining = false
		o.link.Drained()
	}
	o.mu.Unlock()
	o.pump()
}

// Ready implements server.Sender.
func (o *outlet) Ready(drain bool) {
	o.mu.Lock()
	o.draining = o.draining || drain
	o.mu.Unlock()
	o.pump()
}

// Disposed implements server.Sender.
func (o *outlet) Disposed(s *server.Sent, state any, settled bool) {
	token, _ := s.Note.(bus.LockToken)
	how, answer := settlement(state)
	o.peer.namespace.Bus.Settle(o.path, []bus.LockToken{token}, how, func(err error) {
		if err != nil {
			answer = rejected(err)
		}
		if !settled {
			s.Settle(answer)
		}
		o.pump()
	})
}
