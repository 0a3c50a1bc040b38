package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// anyBroker returns the broker of a node that runs, nil if the party has to wait for one.
func (w *brokerWorld) anyBroker(d dice) *brokerNode {
	n := w.anyNode(d)
	if n == nil {
		return nil
	}
	return n.broker
}

// callUntilDone calls act with a broker until it succeeds, fails for good, or the world ends.
func (w *brokerWorld) callUntilDone(p *party, what string, act func(n *brokerNode) (isDone bool, err error)) error {
	for {
		if _, ok := p.turn(what); !ok {
			return nil
		}
		if n := w.anyBroker(p.d); n != nil {
			if isDone, err := act(n); isDone || err != nil {
				return err
			}
		}
		if !p.pause(time.Second) {
			return nil
		}
	}
}

// unexplained returns an error of a broker that no fault of the world explains, else nil.
func unexplained(err error) error {
	if slices.Contains([]domain.Kind{domain.Invalid, domain.Damaged, domain.NewerFormat}, domain.KindOf(err)) {
		return err
	}
	if errors.Is(err, broker.ErrForbidden) || errors.Is(err, broker.ErrUnauthenticated) {
		return err
	}
	return nil
}

// A brokerManager puts parties by any node.
type brokerManager struct {
	party
	w *brokerWorld
}

// putAll puts all parties of the configuration.
func (m *brokerManager) putAll() error {
	for _, id := range m.w.producers {
		if err := m.put(id, broker.Draft{Token: new("token-of-" + id.String())}); err != nil {
			return err
		}
	}
	for _, c := range m.w.channels {
		if err := m.put(c.id, broker.Draft{Token: new("token-of-" + c.id.String())}); err != nil {
			return err
		}
		for _, consumer := range c.consumers[:c.configured] {
			if err := m.putConsumer(consumer); err != nil {
				return err
			}
		}
	}
	return nil
}

// put puts a party until it is stored.
func (m *brokerManager) put(id domain.PartyID, d broker.Draft) error {
	return m.w.callUntilDone(&m.party, "puts "+id.String(), func(n *brokerNode) (bool, error) {
		_, created, err := n.service.Put(m.w.ctx, adminCredentials, id, d, broker.Condition{})
		if err == nil && created && !m.w.noteCreated(id) {
			return false, fmt.Errorf("P18: two PUTs have created %s in %s", id, id.List())
		}
		if failure := unexplained(err); failure != nil {
			return false, fmt.Errorf("a PUT of %s fails: %w", id, failure)
		}
		return err == nil, nil
	})
}

// noteCreated notes that a PUT has created a party, and reports whether it is the first one.
func (w *brokerWorld) noteCreated(id domain.PartyID) bool {
	w.pmu.Lock()
	defer w.pmu.Unlock()
	isFirst := !w.created[id]
	w.created[id] = true
	return isFirst
}

// putConsumer puts a consumer until it is stored, and notes what the channel has then.
func (m *brokerManager) putConsumer(c *brokerConsumer) error {
	w := m.w
	before := w.observer.Published(c.stream.String())
	w.pmu.Lock()
	if c.before == nil {
		c.before = before
	}
	w.pmu.Unlock()
	if err := m.put(c.id, broker.Draft{Token: &c.token, CallbackURL: c.url()}); err != nil || w.ctx.Err() != nil {
		return err
	}
	answered := w.observer.Published(c.stream.String())
	w.pmu.Lock()
	defer w.pmu.Unlock()
	if c.answered == nil {
		c.answered, c.isCreated = answered, true
	}
	return nil
}

// putLate puts a consumer while messages are sent.
func (m *brokerManager) putLate(c *brokerConsumer) error {
	if !m.pause(time.Duration(m.d.n(30_000)) * time.Millisecond) {
		return nil
	}
	if err := m.putConsumer(c); err != nil {
		return err
	}
	m.w.reached("a consumer was put while messages were sent")
	return nil
}

// traceHeader travels along with messages.
const traceHeader = "X-Trace"

// A sentMessage is one that a producer sends.
type sentMessage struct {
	channel     *brokerChannel
	broadcast   *broker.Broadcast
	credentials *broker.Credentials
	id          string // "": it was not accepted yet
	entry       push.Entry
}

// A seenMessage is one that a consumer or a reader has got.
type seenMessage struct {
	payload, contentType string
	metadata             map[string]string
}

// compareWithSent compares a message with what was sent. The message of an entry is always the same, and
// no message has two entries.
func (w *brokerWorld) compareWithSent(e push.Entry, m *seenMessage) error {
	w.pmu.Lock()
	defer w.pmu.Unlock()
	s := w.sent[m.payload]
	switch {
	case s == nil:
		return fmt.Errorf("P19: no producer has sent %q", domain.Clip(m.payload))
	case s.entry != push.Entry{} && s.entry != e:
		return fmt.Errorf("P19: the message is %s, too", s.entry)
	case w.payloads[e] != "" && w.payloads[e] != m.payload:
		return fmt.Errorf("P19: the message was another one before")
	case e.Priority != s.broadcast.Priority || e.Stream != s.channel.id.Stream().String():
		return fmt.Errorf("P19: the message was sent to %s with priority %d", s.channel.id, s.broadcast.Priority)
	case m.contentType != s.broadcast.ContentType || m.metadata[traceHeader] != s.broadcast.Metadata[traceHeader]:
		return fmt.Errorf("P19: the message has content type %q and metadata %v, and was sent with %q and %v", m.contentType, m.metadata, s.broadcast.ContentType, s.broadcast.Metadata)
	}
	s.entry, w.payloads[e] = e, m.payload
	return nil
}

// A brokerProducer broadcasts messages by any node.
type brokerProducer struct {
	party
	w *brokerWorld
	n int // messages so far
}

func (p *brokerProducer) broadcastMany() error {
	for range 4 + p.d.n(10) {
		if !p.pause(time.Duration(p.d.n(5000)) * time.Millisecond) {
			return nil
		}
		for range 1 + p.d.n(4) {
			if err := p.broadcast(p.newMessage()); err != nil {
				return err
			}
		}
	}
	return nil
}

// broadcastLate broadcasts messages some time after the outage of a node.
func (p *brokerProducer) broadcastLate() error {
	if !p.pause(time.Duration(40+p.d.n(40)) * time.Second) {
		return nil
	}
	return p.broadcastMany()
}

// newMessage returns a message whose payload no other one has.
func (p *brokerProducer) newMessage() *sentMessage {
	p.n++
	w := p.w
	producer, channel := w.producers[p.d.n(len(w.producers))], w.channels[p.d.n(len(w.channels))]
	m := &sentMessage{
		channel: channel,
		broadcast: &broker.Broadcast{
			Priority: []int{0, 0, 7}[p.d.n(3)], ContentType: "text/plain", Metadata: map[string]string{traceHeader: fmt.Sprint(p.who, "-", p.n)},
			Payload: fmt.Appendf(nil, "%d of %s%*s", p.n, p.who, p.d.n(300), ""),
		},
		credentials: &broker.Credentials{
			ChannelToken: "token-of-" + channel.id.String(), ProducerID: producer.String(), ProducerToken: "token-of-" + producer.String(),
		},
	}
	if p.d.n(2) == 0 {
		m.broadcast.ID = fmt.Sprint(p.who, "-", p.n)
	}
	w.pmu.Lock()
	defer w.pmu.Unlock()
	w.sent[string(m.broadcast.Payload)] = m
	return m
}

// broadcast sends a message. With an id it is sent again until it is accepted; without, only if it
// was not.
func (p *brokerProducer) broadcast(m *sentMessage) error {
	return p.w.callUntilDone(&p.party, "broadcasts", func(n *brokerNode) (bool, error) {
		id, _, err := n.service.Broadcast(p.w.ctx, m.credentials, m.channel.id, m.broadcast)
		if err == nil {
			return true, errors.Join(p.w.noteAccepted(m, id), p.checkAccepted(m))
		}
		if errors.Is(err, broker.ErrOtherContent) || unexplained(err) != nil {
			return false, fmt.Errorf("a broadcast of %s to %s fails: %w", p.who, m.channel.id, err)
		}
		if domain.KindOf(err) == domain.Uncertain {
			if m.broadcast.ID == "" {
				return true, nil
			}
			p.w.reached("a message was sent again after its outcome was not known")
		}
		return false, nil
	})
}

// noteAccepted notes that a message was accepted, and returns an error if there is no such message.
func (w *brokerWorld) noteAccepted(m *sentMessage, id string) error {
	at, isOurs := domain.ParseMessageID(id)
	if !isOurs {
		return fmt.Errorf("P19: a message was accepted as %q, which is no id", id)
	}
	e := entryOf(m.channel.id.Stream(), at)
	if n := w.observer.Published(e.Stream)[e.Priority]; n <= e.Number {
		return fmt.Errorf("P19: message %s was accepted, and priority %d of %s has %d messages", id, e.Priority, m.channel.id, n)
	}
	w.pmu.Lock()
	if m.id != "" && m.id != id {
		w.pmu.Unlock()
		return fmt.Errorf("P19: message %s was accepted as %s before", id, m.id)
	}
	m.id = id
	w.pmu.Unlock()
	return w.compareWithSent(e, &seenMessage{string(m.broadcast.Payload), m.broadcast.ContentType, m.broadcast.Metadata})
}

// checkAccepted reads a message that was accepted, or broadcasts it again: as it was, or with its id
// and another payload.
func (p *brokerProducer) checkAccepted(m *sentMessage) error {
	n := p.w.anyBroker(p.d)
	if n == nil {
		return nil
	}
	var err error
	switch p.d.n(6) {
	case 0:
		var found *broker.Message
		found, err = n.service.Message(p.w.ctx, m.credentials, m.channel.id, m.id, nil)
		if err == nil {
			return p.w.compareWithSent(m.entry, &seenMessage{string(found.Payload), found.ContentType, found.Metadata})
		}
		if domain.KindOf(err) == domain.NotFound {
			return fmt.Errorf("P19: message %s was accepted, and is not found: %w", m.id, err)
		}
	case 1:
		if m.broadcast.ID == "" {
			return nil
		}
		var id string
		id, _, err = n.service.Broadcast(p.w.ctx, m.credentials, m.channel.id, m.broadcast)
		if err == nil {
			p.w.reached("a broadcast was repeated by its producer id")
			return p.w.noteAccepted(m, id)
		}
		if errors.Is(err, broker.ErrOtherContent) {
			return fmt.Errorf("P19: message %s was sent again as it was: %w", m.id, err)
		}
	case 2:
		if m.broadcast.ID == "" {
			return nil
		}
		other := *m.broadcast
		other.Payload = []byte("something else")
		if _, _, err = n.service.Broadcast(p.w.ctx, m.credentials, m.channel.id, &other); err == nil {
			return fmt.Errorf("P19: message %s was accepted again with other content", m.id)
		}
	}
	return unexplained(err)
}
