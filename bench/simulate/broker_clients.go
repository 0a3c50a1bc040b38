package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// anyBroker returns the broker of a random node, or nil while that node is down.
func (sim *brokerSimulation) anyBroker(rng random.Source) *brokerNode {
	n := sim.anyNode(rng)
	if n == nil {
		return nil
	}
	return n.broker
}

// callUntilDone calls act with a broker until act succeeds or fails permanently, or the simulation ends.
func (sim *brokerSimulation) callUntilDone(p *baseClient, what string, act func(n *brokerNode) (isDone bool, err error)) error {
	for {
		if _, ok := p.awaitTurn(what); !ok {
			return nil
		}
		if n := sim.anyBroker(p.rng); n != nil {
			if isDone, err := act(n); isDone || err != nil {
				return err
			}
		}
		if !p.pause(time.Second) {
			return nil
		}
	}
}

// unexplainedError returns err if no injected fault explains it, and nil otherwise.
func unexplainedError(err error) error {
	if slices.Contains([]domain.Kind{domain.Invalid, domain.Damaged, domain.NewerFormat}, domain.KindOf(err)) {
		return err
	}
	if errors.Is(err, broker.ErrForbidden) || errors.Is(err, broker.ErrUnauthenticated) {
		return err
	}
	return nil
}

// A brokerManager puts parties through any node.
type brokerManager struct {
	baseClient
	sim *brokerSimulation
}

// putAll puts all parties of the configuration.
func (m *brokerManager) putAll() error {
	for _, id := range m.sim.producers {
		if err := m.putParty(id, broker.Draft{Token: new("token-of-" + id.String())}); err != nil {
			return err
		}
	}
	for _, c := range m.sim.channels {
		if err := m.putParty(c.id, broker.Draft{Token: new("token-of-" + c.id.String())}); err != nil {
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

// putParty repeats a PUT of a party until it is stored.
func (m *brokerManager) putParty(id domain.PartyID, d broker.Draft) error {
	return m.sim.callUntilDone(&m.baseClient, "puts "+id.String(), func(n *brokerNode) (bool, error) {
		_, created, err := n.service.PutParty(m.sim.ctx, adminCredentials, id, d, broker.Condition{})
		if err == nil && created && !m.sim.noteCreated(id) {
			return false, fmt.Errorf("P18: two PUTs reported that they created %s in %s", id, id.List())
		}
		if failure := unexplainedError(err); failure != nil {
			return false, fmt.Errorf("a PUT of %s failed: %w", id, failure)
		}
		return err == nil, nil
	})
}

// noteCreated records that a PUT created a party. It reports whether this is the first PUT that created the party.
func (sim *brokerSimulation) noteCreated(id domain.PartyID) bool {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	isFirst := !sim.created[id]
	sim.created[id] = true
	return isFirst
}

// putConsumer repeats the PUT of a consumer until it is stored. It records how many messages the channel has before the
// first PUT and after the last.
func (m *brokerManager) putConsumer(c *brokerConsumer) error {
	sim := m.sim
	before := sim.observer.Published(c.stream.String())
	sim.pmu.Lock()
	if c.before == nil {
		c.before = before
	}
	sim.pmu.Unlock()
	if err := m.putParty(c.id, broker.Draft{Token: &c.token, CallbackURL: c.callbackURL()}); err != nil || sim.ctx.Err() != nil {
		return err
	}
	answered := sim.observer.Published(c.stream.String())
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	if c.answered == nil {
		c.answered, c.isCreated = answered, true
	}
	return nil
}

// putLate puts a consumer while producers send messages.
func (m *brokerManager) putLate(c *brokerConsumer) error {
	if !m.pause(time.Duration(m.rng.IntN(30_000)) * time.Millisecond) {
		return nil
	}
	if err := m.putConsumer(c); err != nil {
		return err
	}
	m.sim.MarkReached("a consumer was put while messages were sent")
	return nil
}

// traceHeader is a metadata field that every message has.
const traceHeader = "X-Trace"

// A sentMessage is a message that a producer sends.
type sentMessage struct {
	channel     *brokerChannel
	broadcast   *broker.Broadcast
	credentials *broker.Credentials
	id          string // "" until the message is accepted
	entry       push.Entry
}

// A seenMessage is a message that a consumer or a reader received.
type seenMessage struct {
	payload, contentType string
	metadata             map[string]string
}

// compareWithSent compares a received message with the message that was sent. It returns an error if the messages
// differ, if the entry had a different message before, or if the message has two entries.
func (sim *brokerSimulation) compareWithSent(e push.Entry, m *seenMessage) error {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	s := sim.sent[m.payload]
	switch {
	case s == nil:
		return fmt.Errorf("P19: no producer has sent %q", domain.Shorten(m.payload))
	case s.entry != push.Entry{} && s.entry != e:
		return fmt.Errorf("P19: the message is also entry %s", s.entry)
	case sim.payloads[e] != "" && sim.payloads[e] != m.payload:
		return fmt.Errorf("P19: the entry had another message before")
	case e.Priority != s.broadcast.Priority || e.Stream != s.channel.id.Stream().String():
		return fmt.Errorf("P19: the message was sent to %s with priority %d", s.channel.id, s.broadcast.Priority)
	case m.contentType != s.broadcast.ContentType || m.metadata[traceHeader] != s.broadcast.Metadata[traceHeader]:
		return fmt.Errorf("P19: the message has content type %q and metadata %v, but was sent with %q and %v", m.contentType, m.metadata, s.broadcast.ContentType, s.broadcast.Metadata)
	}
	s.entry, sim.payloads[e] = e, m.payload
	return nil
}

// A brokerProducer broadcasts messages through any node.
type brokerProducer struct {
	baseClient
	sim          *brokerSimulation
	messageCount int // number of messages sent so far
}

func (p *brokerProducer) broadcastMany() error {
	for range 4 + p.rng.IntN(10) {
		if !p.pause(time.Duration(p.rng.IntN(5000)) * time.Millisecond) {
			return nil
		}
		for range 1 + p.rng.IntN(4) {
			if err := p.broadcastMessage(p.newMessage()); err != nil {
				return err
			}
		}
	}
	return nil
}

// broadcastLate broadcasts messages some time after the outage of a node.
func (p *brokerProducer) broadcastLate() error {
	if !p.pause(time.Duration(40+p.rng.IntN(40)) * time.Second) {
		return nil
	}
	return p.broadcastMany()
}

// newMessage returns a message with a unique payload.
func (p *brokerProducer) newMessage() *sentMessage {
	p.messageCount++
	sim := p.sim
	producer, channel := sim.producers[p.rng.IntN(len(sim.producers))], sim.channels[p.rng.IntN(len(sim.channels))]
	m := &sentMessage{
		channel: channel,
		broadcast: &broker.Broadcast{
			Priority: []int{0, 0, 7}[p.rng.IntN(3)], ContentType: "text/plain", Metadata: map[string]string{traceHeader: fmt.Sprint(p.who, "-", p.messageCount)},
			Payload: fmt.Appendf(nil, "%d of %s%*s", p.messageCount, p.who, p.rng.IntN(300), ""),
		},
		credentials: &broker.Credentials{
			ChannelToken: "token-of-" + channel.id.String(), ProducerID: producer.String(), ProducerToken: "token-of-" + producer.String(),
		},
	}
	if p.rng.IntN(2) == 0 {
		m.broadcast.ID = fmt.Sprint(p.who, "-", p.messageCount)
	}
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	sim.sent[string(m.broadcast.Payload)] = m
	return m
}

// broadcastMessage sends a message. A message with an id is repeated until it is accepted; a message without an id is
// repeated only if it was certainly not stored.
func (p *brokerProducer) broadcastMessage(m *sentMessage) error {
	return p.sim.callUntilDone(&p.baseClient, "broadcasts", func(n *brokerNode) (bool, error) {
		id, _, err := n.service.Broadcast(p.sim.ctx, m.credentials, m.channel.id, m.broadcast)
		if err == nil {
			return true, errors.Join(p.sim.noteAccepted(m, id), p.checkAccepted(m))
		}
		if errors.Is(err, broker.ErrOtherContent) || unexplainedError(err) != nil {
			return false, fmt.Errorf("a broadcast of %s to %s failed: %w", p.who, m.channel.id, err)
		}
		if domain.KindOf(err) == domain.Uncertain {
			if m.broadcast.ID == "" {
				return true, nil
			}
			p.sim.MarkReached("a message was sent again after its outcome was not known")
		}
		return false, nil
	})
}

// noteAccepted records that a message was accepted. It returns an error if the stream does not contain the message.
func (sim *brokerSimulation) noteAccepted(m *sentMessage, id string) error {
	at, isOurs := domain.ParseMessageID(id)
	if !isOurs {
		return fmt.Errorf("P19: a message was accepted with the invalid id %q", id)
	}
	e := entryOf(m.channel.id.Stream(), at)
	if n := sim.observer.Published(e.Stream)[e.Priority]; n <= e.Number {
		return fmt.Errorf("P19: message %s was accepted, but priority %d of %s has only %d messages", id, e.Priority, m.channel.id, n)
	}
	sim.pmu.Lock()
	if m.id != "" && m.id != id {
		sim.pmu.Unlock()
		return fmt.Errorf("P19: message %s was accepted as %s before", id, m.id)
	}
	m.id = id
	sim.pmu.Unlock()
	return sim.compareWithSent(e, &seenMessage{string(m.broadcast.Payload), m.broadcast.ContentType, m.broadcast.Metadata})
}

// checkAccepted reads an accepted message, broadcasts it again unchanged, or broadcasts its id with a different
// payload.
func (p *brokerProducer) checkAccepted(m *sentMessage) error {
	n := p.sim.anyBroker(p.rng)
	if n == nil {
		return nil
	}
	var err error
	switch p.rng.IntN(6) {
	case 0:
		var found *broker.Message
		found, err = n.service.Message(p.sim.ctx, m.credentials, m.channel.id, m.id, nil)
		if err == nil {
			return p.sim.compareWithSent(m.entry, &seenMessage{string(found.Payload), found.ContentType, found.Metadata})
		}
		if domain.KindOf(err) == domain.NotFound {
			return fmt.Errorf("P19: message %s was accepted, but is not found: %w", m.id, err)
		}
	case 1:
		if m.broadcast.ID == "" {
			return nil
		}
		var id string
		id, _, err = n.service.Broadcast(p.sim.ctx, m.credentials, m.channel.id, m.broadcast)
		if err == nil {
			p.sim.MarkReached("a broadcast was repeated by its producer id")
			return p.sim.noteAccepted(m, id)
		}
		if errors.Is(err, broker.ErrOtherContent) {
			return fmt.Errorf("P19: message %s was sent again without a change: %w", m.id, err)
		}
	case 2:
		if m.broadcast.ID == "" {
			return nil
		}
		other := *m.broadcast
		other.Payload = []byte("something else")
		if _, _, err = n.service.Broadcast(p.sim.ctx, m.credentials, m.channel.id, &other); err == nil {
			return fmt.Errorf("P19: message %s was accepted again with different content", m.id)
		}
	}
	return unexplainedError(err)
}
