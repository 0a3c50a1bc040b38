package simulate

import (
	"fmt"
	"slices"

	"github.com/messagehub/messagehub/bench/simulate/consumerhistory"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A notedCall is a call of a consumer by the node that owns its cursor.
type notedCall struct {
	consumer *brokerConsumer
	began    int64
	losses   int // number of times that a node had lost the cursor before the call began
	entry    push.Entry
}

// findConsumer returns the consumer to which a cursor belongs.
func (sim *brokerSimulation) findConsumer(cursor domain.CursorID) *brokerConsumer {
	for _, channel := range sim.channels {
		for _, c := range channel.consumers {
			if c.cursor == cursor {
				return c
			}
		}
	}
	return nil
}

// nextTick returns the next time on the clock of the histories.
func (sim *brokerSimulation) nextTick() int64 { return sim.ticks.Add(1) }

func (c *brokerConsumer) countLosses() int {
	_, losses := c.sim.observer.Attempts(c.cursor.String())
	return losses
}

// beginCall records that a node begins a call. It returns nil if the node does not own the cursor.
func (c *brokerConsumer) beginCall(n *brokerNode, e domain.EntryID) *notedCall {
	if c.sim.observer.Owner(c.cursor.String()) != n.who {
		return nil
	}
	return &notedCall{consumer: c, began: c.sim.nextTick(), losses: c.countLosses(), entry: entryOf(c.stream, e)}
}

// endCall records the result of a call, unless the node was killed. A success enters the history after it is stored.
func (o *notedCall) endCall(n *brokerNode, a domain.Answer) {
	if o == nil || n.killed.Load() {
		return
	}
	c := o.consumer
	if policy := domain.BrokerPolicy(0, 0); policy.IsSuccess(a) {
		c.sim.pmu.Lock()
		c.pending = append(c.pending, o)
		c.sim.pmu.Unlock()
	} else if c.countLosses() == o.losses {
		c.history.Call(o.began, c.sim.nextTick(), o.entry.String(), false)
	}
	c.settleCalls()
}

// settleCalls adds the calls whose success is stored to the history. It drops the calls whose node has lost the cursor.
// The results of these calls may be lost, so a later call or bundle may deliver their messages again.
func (c *brokerConsumer) settleCalls() {
	losses := c.countLosses()
	outstanding, at := c.sim.observer.Outstanding(c.cursor.String())
	c.sim.pmu.Lock()
	defer c.sim.pmu.Unlock()
	c.pending = slices.DeleteFunc(c.pending, func(o *notedCall) bool {
		if losses == o.losses && (o.entry.Number >= at[o.entry.Priority] || slices.Contains(outstanding, o.entry)) {
			return false
		}
		if losses == o.losses {
			c.history.Call(o.began, c.sim.nextTick(), o.entry.String(), true)
		}
		return true
	})
}

// notePeek records the result of a Peek. A failed Peek is not recorded, because it does not restrict the order of
// operations.
func (c *brokerConsumer) notePeek(client int, began int64, b *broker.Bundle, err error) {
	c.settleCalls()
	if err != nil {
		return
	}
	if b == nil {
		c.history.Peek(client, began, c.sim.nextTick(), "", nil)
		return
	}
	var entries []string
	for _, m := range b.Messages {
		at, _ := domain.ParseMessageID(m.ID)
		entries = append(entries, entryOf(c.stream, at).String())
	}
	c.history.Peek(client, began, c.sim.nextTick(), b.ID, entries)
}

// noteDequeue records the result of a Dequeue.
func (c *brokerConsumer) noteDequeue(client int, began int64, bundle string, err error) {
	c.settleCalls()
	outcome := consumerhistory.Unknown
	switch {
	case err == nil:
		outcome = consumerhistory.Done
	case domain.KindOf(err) == domain.NotFound:
		outcome = consumerhistory.NotFound
	}
	c.history.Dequeue(client, began, c.sim.nextTick(), bundle, outcome)
}

// verifyHistories returns an error if a consumer received calls and bundles that no sequential hub could have
// delivered.
func (sim *brokerSimulation) verifyHistories() error {
	for _, channel := range sim.channels {
		for _, c := range channel.consumers {
			c.settleCalls()
			switch v := c.history.Check(sim.nextTick(), consumerhistory.Options{StaleReads: sim.plan.consistency != "Strong"}); v {
			case consumerhistory.Legal:
				sim.MarkReached("a history of calls and bundles was explained")
			case consumerhistory.Skipped: // the history is too long
			case consumerhistory.Illegal, consumerhistory.GaveUp:
				return fmt.Errorf("P15, P20: the history of %s cannot be explained by a sequential hub (%v):\n%s", c.name, v, &c.history)
			}
		}
	}
	return nil
}
