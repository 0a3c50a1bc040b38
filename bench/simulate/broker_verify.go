package simulate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// verifyBegin returns an error unless the consumer begins at the correct entries: it must receive every message that was
// accepted after its first PUT succeeded, and no message from before that PUT.
func (c *brokerConsumer) verifyBegin() error {
	begin := c.sim.observer.Begin(c.cursor.String())
	c.sim.pmu.Lock()
	defer c.sim.pmu.Unlock()
	if c.answered == nil {
		return nil
	}
	for p := range domain.Priorities {
		if n := begin[p]; n < c.before[p] || n > c.answered[p] {
			return fmt.Errorf("P18: consumer %s begins with message %d of priority %d, want one between %d, its position at the PUT, and %d, its position after the response", c.name, n, p, c.before[p], c.answered[p])
		}
	}
	return nil
}

func sortMessages(all []*sentMessage) {
	slices.SortFunc(all, func(a, b *sentMessage) int {
		return cmp.Or(cmp.Compare(a.entry.Stream, b.entry.Stream), cmp.Compare(a.entry.Priority, b.entry.Priority), cmp.Compare(a.entry.Number, b.entry.Number))
	})
}

// verifyMessage compares the final status that a node reports for a message with the recorded deliveries. isDone is
// false if the node returned a temporary error.
func (sim *brokerSimulation) verifyMessage(n *brokerNode, m *sentMessage) (isDone bool, err error) {
	found, err := n.service.Message(sim.ctx, adminCredentials, m.channel.id, m.id, nil)
	switch {
	case domain.KindOf(err) == domain.NotFound || unexplainedError(err) != nil:
		return false, fmt.Errorf("P19: message %s was accepted, but is not found: %w", m.id, err)
	case err != nil:
		return false, nil //nolint:nilerr // the request is repeated
	}
	if err := sim.compareWithSent(m.entry, &seenMessage{string(found.Payload), found.ContentType, found.Metadata}); err != nil {
		return false, err
	}
	if found.Status != broker.OutForDelivery {
		return false, fmt.Errorf("message %s is %s at the end", m.id, found.Status)
	}
	statuses := make(map[domain.PartyID]broker.JobStatus)
	for _, j := range found.Jobs {
		statuses[j.Consumer] = j.Status
	}
	for _, c := range m.channel.consumers {
		want := broker.Delivered
		switch {
		case !c.isCreated || m.entry.Number < sim.observer.Begin(c.cursor.String())[m.entry.Priority]:
			want = ""
		case sim.observer.Dead(c.cursor.String(), m.entry):
			want = broker.Dead
		}
		if got := statuses[c.id]; got != want {
			return false, fmt.Errorf("the job of message %s for consumer %s is %q at the end, want %q", m.id, c.name, got, want)
		}
	}
	return true, nil
}

// verifyMessages compares the final status that nodes report for all messages with the recorded deliveries.
func (sim *brokerSimulation) verifyMessages(p *baseClient) error {
	sim.pmu.Lock()
	var accepted []*sentMessage
	for _, m := range sim.sent {
		if m.id != "" {
			accepted = append(accepted, m)
		}
	}
	sim.pmu.Unlock()
	sortMessages(accepted)
	for _, m := range accepted {
		err := sim.callUntilDone(p, "reads a message", func(n *brokerNode) (bool, error) { return sim.verifyMessage(n, m) })
		if err != nil {
			return err
		}
	}
	for _, channel := range sim.channels {
		err := sim.callUntilDone(p, "lists messages", func(n *brokerNode) (bool, error) { return sim.verifyList(n, channel, accepted) })
		if err != nil {
			return err
		}
		for _, c := range channel.consumers {
			if err := c.verifyBegin(); err != nil {
				return err
			}
			err := sim.callUntilDone(p, "lists dead letters", func(n *brokerNode) (bool, error) { return sim.verifyConsumerDeadLetters(n, c) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}
