package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A brokerOperator re-triggers jobs and messages through any node.
type brokerOperator struct {
	baseClient
	sim *brokerSimulation
}

func (o *brokerOperator) retriggerMany() error {
	for range 5 + o.rng.IntN(15) {
		if !o.pause(time.Duration(o.rng.IntN(10_000)) * time.Millisecond) {
			return nil
		}
		channel := o.sim.channels[o.rng.IntN(len(o.sim.channels))]
		consumer := channel.consumers[o.rng.IntN(len(channel.consumers))]
		if _, ok := o.awaitTurn("re-triggers"); !ok {
			return nil
		}
		n := o.sim.anyBroker(o.rng)
		if n == nil || !o.sim.isPut(consumer) {
			continue
		}
		if err := o.retriggerDead(n, channel, consumer); err != nil {
			return err
		}
	}
	return nil
}

// isPut reports whether a PUT of the consumer has succeeded.
func (sim *brokerSimulation) isPut(c *brokerConsumer) bool {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	return c.isCreated
}

// retriggerDead re-triggers a dead job of the consumer, or its message. A failed request is not repeated.
func (o *brokerOperator) retriggerDead(n *brokerNode, channel *brokerChannel, consumer *brokerConsumer) error {
	creds := adminCredentials
	if o.rng.IntN(2) == 0 {
		creds = &broker.Credentials{ConsumerToken: consumer.token}
	}
	dead, err := n.service.DeadLetters(o.sim.ctx, creds, consumer.id, domain.EntryID{Number: -1}, 100)
	if failure := unexplainedError(err); failure != nil {
		return fmt.Errorf("the dead letters of %s cannot be read: %w", consumer.name, failure)
	}
	for _, j := range dead {
		if j.Status != broker.Dead || j.Reason == "" {
			return fmt.Errorf("a listed dead letter of %s has the wrong status or no reason: %+v", consumer.name, j)
		}
	}
	if len(dead) == 0 {
		return o.retriggerAny(n, channel)
	}
	message := dead[o.rng.IntN(len(dead))].Message
	if o.rng.IntN(2) == 0 {
		err = n.service.RetriggerMessage(o.sim.ctx, adminCredentials, channel.id, message)
		if err == nil {
			o.sim.MarkReached("a message was re-triggered")
		}
	} else if err = n.service.RetriggerJob(o.sim.ctx, creds, consumer.id, message); err == nil {
		o.sim.MarkReached("a dead job was re-triggered")
	}
	if domain.KindOf(err) == domain.NotFound || unexplainedError(err) != nil {
		return fmt.Errorf("message %s of %s, which is a dead letter, cannot be re-triggered: %w", message, consumer.name, err)
	}
	return nil
}

// retriggerAny re-triggers a random accepted message of a channel.
func (o *brokerOperator) retriggerAny(n *brokerNode, channel *brokerChannel) error {
	o.sim.pmu.Lock()
	var all []*sentMessage
	for _, m := range o.sim.sent {
		if m.channel == channel && m.id != "" {
			all = append(all, m)
		}
	}
	o.sim.pmu.Unlock()
	if len(all) == 0 {
		return nil
	}
	sortMessages(all)
	m := all[o.rng.IntN(len(all))]
	id := m.id
	if m.broadcast.ID != "" && o.rng.IntN(2) == 0 {
		id = m.broadcast.ID
	}
	err := n.service.RetriggerMessage(o.sim.ctx, adminCredentials, channel.id, id)
	if err == nil {
		o.sim.MarkReached("a message was re-triggered")
	}
	if domain.KindOf(err) == domain.NotFound || unexplainedError(err) != nil {
		return fmt.Errorf("P19: message %s of %s was accepted, but is not found: %w", id, channel.id, err)
	}
	return nil
}

// verifyConsumerDeadLetters compares the dead letters that a node lists with the stored dead letters. isDone is false
// if the node returned a temporary error.
func (sim *brokerSimulation) verifyConsumerDeadLetters(n *brokerNode, c *brokerConsumer) (isDone bool, err error) {
	dead, err := n.service.DeadLetters(sim.ctx, &broker.Credentials{ConsumerToken: c.token}, c.id, domain.EntryID{Number: -1}, 10_000)
	if failure := unexplainedError(err); failure != nil || err != nil {
		return false, failure
	}
	if want := sim.observer.DeadLetters(c.cursor.String()); len(dead) != want {
		return false, fmt.Errorf("consumer %s has %d dead letters, want %d", c.name, len(dead), want)
	}
	for _, j := range dead {
		at, _ := domain.ParseMessageID(j.Message)
		if !sim.observer.Dead(c.cursor.String(), entryOf(c.stream, at)) {
			return false, fmt.Errorf("message %s of consumer %s is listed as a dead letter, but is not one", j.Message, c.name)
		}
	}
	return true, nil
}

// verifyList compares the messages that a node lists with the accepted messages. isDone is false if the node returned a
// temporary error.
func (sim *brokerSimulation) verifyList(n *brokerNode, c *brokerChannel, accepted []*sentMessage) (isDone bool, err error) {
	var listed []string
	for at, more := (domain.EntryID{}), true; more; {
		var found []*broker.Message
		found, at, more, err = n.service.Messages(sim.ctx, adminCredentials, c.id, broker.MessageQuery{First: at, Limit: 10})
		if failure := unexplainedError(err); failure != nil || err != nil {
			return false, failure
		}
		for _, m := range found {
			listed = append(listed, m.ID)
		}
	}
	for _, m := range accepted {
		if m.channel == c && !slices.Contains(listed, m.id) {
			return false, fmt.Errorf("P19: message %s was accepted, but channel %s lists %v", m.id, c.id, listed)
		}
	}
	if want := sim.countPublished(c.id.Stream()); int64(len(listed)) != want {
		return false, fmt.Errorf("P19: channel %s has %d messages, but lists %v", c.id, want, listed)
	}
	return true, nil
}
