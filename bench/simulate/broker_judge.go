package simulate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// judgeBegin returns an error unless the consumer gets every message that was accepted after its
// PUT was answered, and none that was there before the PUT.
func (c *brokerConsumer) judgeBegin() error {
	begin := c.w.observer.Begin(c.cursor.String())
	c.w.pmu.Lock()
	defer c.w.pmu.Unlock()
	if c.answered == nil {
		return nil
	}
	for p := range domain.Priorities {
		if n := begin[p]; n < c.before[p] || n > c.answered[p] {
			return fmt.Errorf("P18: consumer %s begins with message %d of priority %d, want one between %d, when it was put, and %d, when that was answered", c.name, n, p, c.before[p], c.answered[p])
		}
	}
	return nil
}

func sortMessages(all []*sentMessage) {
	slices.SortFunc(all, func(a, b *sentMessage) int {
		return cmp.Or(cmp.Compare(a.entry.Stream, b.entry.Stream), cmp.Compare(a.entry.Priority, b.entry.Priority), cmp.Compare(a.entry.Number, b.entry.Number))
	})
}

// judgeMessage compares what a node says in the end of a message with what has become of it. It
// returns false if the node has not answered.
func (w *brokerWorld) judgeMessage(n *brokerNode, m *sentMessage) (isDone bool, err error) {
	found, err := n.service.Message(w.ctx, adminCredentials, m.channel.id, m.id, nil)
	switch {
	case domain.KindOf(err) == domain.NotFound || unexplained(err) != nil:
		return false, fmt.Errorf("P19: message %s was accepted, and is not found: %w", m.id, err)
	case err != nil:
		return false, nil //nolint:nilerr // it is asked again
	}
	if err := w.compareWithSent(m.entry, &seenMessage{string(found.Payload), found.ContentType, found.Metadata}); err != nil {
		return false, err
	}
	if found.Status != broker.OutForDelivery {
		return false, fmt.Errorf("message %s is %s in the end", m.id, found.Status)
	}
	statuses := make(map[domain.PartyID]broker.JobStatus)
	for _, j := range found.Jobs {
		statuses[j.Consumer] = j.Status
	}
	for _, c := range m.channel.consumers {
		want := broker.Delivered
		switch {
		case !c.isCreated || m.entry.Number < w.observer.Begin(c.cursor.String())[m.entry.Priority]:
			want = ""
		case w.observer.Dead(c.cursor.String(), m.entry):
			want = broker.Dead
		}
		if got := statuses[c.id]; got != want {
			return false, fmt.Errorf("the job of message %s for consumer %s is %q in the end, want %q", m.id, c.name, got, want)
		}
	}
	return true, nil
}

// judgeMessages compares what nodes answer in the end with what has happened.
func (w *brokerWorld) judgeMessages(p *party) error {
	w.pmu.Lock()
	var accepted []*sentMessage
	for _, m := range w.sent {
		if m.id != "" {
			accepted = append(accepted, m)
		}
	}
	w.pmu.Unlock()
	sortMessages(accepted)
	for _, m := range accepted {
		err := w.callUntilDone(p, "reads a message", func(n *brokerNode) (bool, error) { return w.judgeMessage(n, m) })
		if err != nil {
			return err
		}
	}
	for _, channel := range w.channels {
		err := w.callUntilDone(p, "lists messages", func(n *brokerNode) (bool, error) { return w.judgeList(n, channel, accepted) })
		if err != nil {
			return err
		}
		for _, c := range channel.consumers {
			if err := c.judgeBegin(); err != nil {
				return err
			}
			err := w.callUntilDone(p, "lists dead letters", func(n *brokerNode) (bool, error) { return w.judgeDeadLetters(n, c) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}
