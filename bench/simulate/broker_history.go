package simulate

import (
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/bench/simulate/consumerhistory"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A notedCall is a call of a consumer, by the node that owns its cursor.
type notedCall struct {
	c      *brokerConsumer
	began  int64
	losses int // of the cursor by its owners, when the call began
	entry  push.Entry
}

// consumer returns the consumer with a cursor.
func (w *brokerWorld) consumer(cursor domain.CursorID) *brokerConsumer {
	for _, channel := range w.channels {
		for _, c := range channel.consumers {
			if c.cursor == cursor {
				return c
			}
		}
	}
	return nil
}

// now returns the next time of histories.
func (w *brokerWorld) now() int64 { return w.ticks.Add(1) }

func (c *brokerConsumer) losses() int {
	_, losses := c.w.observer.Attempts(c.cursor.String())
	return losses
}

// beginCall notes that a node begins a call. It returns nil if the node does not own the cursor.
func (c *brokerConsumer) beginCall(n *brokerNode, e domain.EntryID) *notedCall {
	if c.w.observer.Owner(c.cursor.String()) != n.who {
		return nil
	}
	return &notedCall{c: c, began: c.w.now(), losses: c.losses(), entry: entryOf(c.stream, e)}
}

// end notes the result of a call, unless the node has lost it. A success counts once it is stored.
func (o *notedCall) end(n *brokerNode, a domain.Answer) {
	if o == nil || n.killed.Load() {
		return
	}
	c := o.c
	if policy := domain.BrokerPolicy(0, 0); policy.IsSuccess(a) {
		c.w.pmu.Lock()
		c.pending = append(c.pending, o)
		c.w.pmu.Unlock()
	} else if c.losses() == o.losses {
		c.history.Call(o.began, c.w.now(), o.entry.String(), false)
	}
	c.settleCalls()
}

// settleCalls notes the calls whose success is stored. It forgets those whose node has lost the
// cursor: their results may be lost, and their messages be delivered by any door.
func (c *brokerConsumer) settleCalls() {
	losses := c.losses()
	outstanding, at := c.w.observer.Outstanding(c.cursor.String())
	c.w.pmu.Lock()
	defer c.w.pmu.Unlock()
	c.pending = slices.DeleteFunc(c.pending, func(o *notedCall) bool {
		if losses == o.losses && (o.entry.Number >= at[o.entry.Priority] || slices.Contains(outstanding, o.entry)) {
			return false
		}
		if losses == o.losses {
			c.history.Call(o.began, c.w.now(), o.entry.String(), true)
		}
		return true
	})
}

// notePeek notes the answer to a Peek. A failure says nothing.
func (c *brokerConsumer) notePeek(client int, began int64, b *broker.Bundle, err error) {
	c.settleCalls()
	if err != nil {
		return
	}
	if b == nil {
		c.history.Peek(client, began, c.w.now(), "", nil)
		return
	}
	var entries []string
	for _, m := range b.Messages {
		at, _ := domain.ParseMessageID(m.ID)
		entries = append(entries, entryOf(c.stream, at).String())
	}
	c.history.Peek(client, began, c.w.now(), b.ID, entries)
}

// noteDequeue notes the answer to a Dequeue.
func (c *brokerConsumer) noteDequeue(client int, began int64, bundle string, err error) {
	c.settleCalls()
	outcome := consumerhistory.Unknown
	switch {
	case err == nil:
		outcome = consumerhistory.Done
	case domain.KindOf(err) == domain.NotFound:
		outcome = consumerhistory.NotFound
	}
	c.history.Dequeue(client, began, c.w.now(), bundle, outcome)
}

// judgeHistories returns an error if no hub that does one thing at a time could have given a consumer
// what it has got by its two doors.
func (w *brokerWorld) judgeHistories() error {
	for _, channel := range w.channels {
		for _, c := range channel.consumers {
			c.settleCalls()
			switch v := c.history.Check(w.now(), consumerhistory.Options{StaleReads: w.plan.consistency != "Strong"}); v {
			case consumerhistory.Legal:
				w.reached("a history of both doors was explained")
			case consumerhistory.Skipped: // it is too long
			case consumerhistory.Illegal, consumerhistory.GaveUp:
				return fmt.Errorf("P15, P20: the history of %s has no explanation (%v):\n%s", c.name, v, &c.history)
			}
		}
	}
	return nil
}
