package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A seenBundles holds the bundles that the clients of a consumer have received. It is guarded by pushSimulation.pmu.
// The response to each request is compared with the results of all requests that ended before this request began. At
// the end, package consumerhistory searches for a valid order of all operations.
type seenBundles struct {
	bundles map[string]*seenBundle
	order   []string // ids of dequeued bundles, in order
	open    string   // id of the received bundle that no client has begun to dequeue; "" if none exists
}

// A seenBundle is a bundle that a client has received.
type seenBundle struct {
	content string // one line for each message
	entries []push.Entry
	began   bool // true after a client has begun to dequeue the bundle
	ended   bool // true after a client has dequeued the bundle
}

// A brokerFetcher fetches the messages of a consumer through any node.
type brokerFetcher struct {
	baseClient
	sim      *brokerSimulation
	consumer *brokerConsumer
	client   int // number of the client in the history of the consumer
}

// fetchMany peeks and dequeues several times.
func (f *brokerFetcher) fetchMany() error {
	for range 3 + f.rng.IntN(8) {
		if !f.pause(time.Duration(f.rng.IntN(12_000)) * time.Millisecond) {
			return nil
		}
		bundle, err := f.peekBundle(1 + f.rng.IntN(6))
		if err == nil && bundle != "" && f.rng.IntN(3) == 0 {
			bundle, err = f.peekBundle(1 + f.rng.IntN(6))
		}
		if err == nil && f.rng.IntN(4) == 0 {
			err = f.dequeueUnknown()
		}
		if err == nil && bundle != "" && f.rng.IntN(4) > 0 {
			err = f.dequeueBundle(bundle)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *brokerFetcher) consumerCredentials() *broker.Credentials {
	return &broker.Credentials{ConsumerToken: f.consumer.token}
}

// peekBundle requests the bundle of the consumer from a node. It returns "" if the node returned no bundle or an error.
func (f *brokerFetcher) peekBundle(limit int) (id string, err error) {
	n, ok := f.awaitBroker("peeks")
	if !ok || !f.sim.isPut(f.consumer) {
		return "", nil
	}
	f.sim.pmu.Lock()
	open, done := f.consumer.seen.open, make(map[string]bool)
	for id, b := range f.consumer.seen.bundles {
		done[id] = b.ended
	}
	f.sim.pmu.Unlock()
	began := f.sim.nextTick()
	bundle, err := n.service.Peek(f.sim.ctx, f.consumerCredentials(), f.consumer.id, limit, nil)
	f.consumer.notePeek(f.client, began, bundle, err)
	if err != nil {
		if unexplainedError(err) != nil {
			return "", fmt.Errorf("a Peek of %s failed: %w", f.consumer.name, err)
		}
		return "", nil
	}
	f.sim.pmu.Lock()
	isOpen := open != "" && f.consumer.seen.open == open // the bundle was open during the whole Peek
	f.sim.pmu.Unlock()
	switch {
	case bundle == nil && isOpen && f.sim.plan.consistency == "Strong": // with weaker consistency, the read may be stale
		return "", fmt.Errorf("P20: a Peek of %s returned nothing, but bundle %s is open", f.consumer.name, open)
	case bundle == nil:
		return "", nil
	case isOpen && bundle.ID != open:
		return "", fmt.Errorf("P20: a Peek of %s returned bundle %s, but %s is open", f.consumer.name, bundle.ID, open)
	case done[bundle.ID]:
		return "", fmt.Errorf("P20: a Peek of %s returned bundle %s, which was dequeued before", f.consumer.name, bundle.ID)
	}
	return bundle.ID, f.consumer.noteBundle(bundle)
}

// awaitBroker waits until the scheduler chooses the client, and returns the broker of a running node.
func (f *brokerFetcher) awaitBroker(what string) (*brokerNode, bool) {
	if _, ok := f.awaitTurn(what); !ok {
		return nil, false
	}
	n := f.sim.anyBroker(f.rng)
	return n, n != nil
}

// noteBundle records a received bundle. It compares the bundle with the sent messages, and with its content when it was
// first received.
func (c *brokerConsumer) noteBundle(b *broker.Bundle) error {
	seen := &seenBundle{}
	var content strings.Builder
	for _, m := range b.Messages {
		at, _ := domain.ParseMessageID(m.ID)
		e := entryOf(c.stream, at)
		if err := c.checkPosition(e); err != nil {
			return fmt.Errorf("bundle %s of %s has %s: %w", b.ID, c.name, e, err)
		}
		if err := c.sim.compareWithSent(e, &seenMessage{string(m.Payload), m.ContentType, m.Metadata}); err != nil {
			return fmt.Errorf("bundle %s of %s has %s: %w", b.ID, c.name, e, err)
		}
		fmt.Fprintf(&content, "%s %s\n", m.ID, m.Payload)
		seen.entries = append(seen.entries, e)
	}
	seen.content = content.String()
	c.sim.pmu.Lock()
	defer c.sim.pmu.Unlock()
	if c.activeCalls > 0 {
		c.sim.MarkReached("a bundle was fetched while calls were under way")
	}
	if before := c.seen.bundles[b.ID]; before != nil {
		if before.content != seen.content {
			return fmt.Errorf("P20: bundle %s of %s has\n%sbut had\n%s", b.ID, c.name, seen.content, before.content)
		}
		c.sim.MarkReached("a bundle was fetched again")
		return nil
	}
	for id, other := range c.seen.bundles {
		for _, e := range other.entries {
			for _, again := range seen.entries {
				if e == again {
					return fmt.Errorf("P15: bundles %s and %s of %s both have %s", id, b.ID, c.name, e)
				}
			}
		}
	}
	c.seen.bundles[b.ID], c.seen.open = seen, b.ID
	return nil
}

// dequeueBundle dequeues a bundle. After a success it may repeat the Dequeue.
func (f *brokerFetcher) dequeueBundle(id string) error {
	sim := f.sim
	for {
		n, ok := f.awaitBroker("dequeues a bundle")
		if !ok && sim.ctx.Err() != nil {
			return nil //nolint:nilerr // the simulation has ended
		}
		if ok {
			sim.pmu.Lock()
			b := f.consumer.seen.bundles[id]
			isAgain := b.ended
			isForgotten := len(f.consumer.seen.order) >= domain.MaxDequeued-1 // order includes bundles whose Dequeue has not returned
			b.began = true
			if f.consumer.seen.open == id {
				f.consumer.seen.open = ""
			}
			for _, e := range b.entries {
				f.consumer.fetched[e] = true
			}
			sim.pmu.Unlock()
			began := sim.nextTick()
			err := n.service.Dequeue(sim.ctx, f.consumerCredentials(), f.consumer.id, id)
			f.consumer.noteDequeue(f.client, began, id, err)
			switch {
			case err == nil && isAgain:
				sim.MarkReached("a bundle was dequeued twice")
				return nil
			case err == nil:
				sim.pmu.Lock()
				b.ended = true
				f.consumer.seen.order = append(f.consumer.seen.order, id)
				sim.pmu.Unlock()
				if f.rng.IntN(3) > 0 {
					return nil
				}
			case domain.KindOf(err) == domain.NotFound && isForgotten:
				return nil
			case domain.KindOf(err) == domain.NotFound || unexplainedError(err) != nil:
				return fmt.Errorf("P20: bundle %s of %s was fetched, but cannot be dequeued: %w", id, f.consumer.name, err)
			}
		}
		if !f.pause(time.Second) {
			return nil
		}
	}
}

// dequeueUnknown dequeues a bundle that does not exist.
func (f *brokerFetcher) dequeueUnknown() error {
	n, ok := f.awaitBroker("dequeues an unknown bundle")
	if !ok || !f.sim.isPut(f.consumer) {
		return nil
	}
	err := n.service.Dequeue(f.sim.ctx, f.consumerCredentials(), f.consumer.id, "unknown")
	if err == nil {
		return fmt.Errorf("P20: a Dequeue by %s of a bundle that does not exist succeeded", f.consumer.name)
	}
	return unexplainedError(err)
}

// checkCaller returns an error if the owner of a cursor calls the consumer with a message that the consumer has
// fetched. A call by a node that has lost the cursor is allowed, because the call may have begun before the fetch.
func (sim *brokerSimulation) checkCaller(n *pushNode, cursor domain.CursorID, e push.Entry) error {
	if sim.observer.Fetched(cursor.String(), e) && sim.observer.Owner(cursor.String()) == n.who {
		return fmt.Errorf("P15: %s calls %s with %s, which the consumer has fetched", n.who, cursor, e)
	}
	return nil
}

// dequeueOpenAfterFaults dequeues all open bundles, unless faults may still happen.
func (sim *brokerSimulation) dequeueOpenAfterFaults(p baseClient) error {
	if !sim.IsFaultFree() {
		return nil
	}
	return sim.dequeueOpen(p)
}

// dequeueOpen dequeues the open bundles of all consumers. It skips a bundle if the node returns an error.
func (sim *brokerSimulation) dequeueOpen(p baseClient) error {
	for _, channel := range sim.channels {
		for _, c := range channel.consumers {
			f := &brokerFetcher{baseClient: p, sim: sim, consumer: c}
			if sim.observer.Bundle(c.cursor.String()) == "" {
				continue
			}
			bundle, err := f.peekBundle(1)
			if err == nil && bundle != "" {
				err = f.dequeueBundle(bundle)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
