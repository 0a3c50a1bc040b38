package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A door is what the clients of a consumer have seen of its bundles. It is guarded by
// pushWorld.pmu. Each call is compared with the calls that had ended when it began. In the end,
// package consumerhistory looks for an order of all of them.
type door struct {
	bundles map[string]*seenBundle
	order   []string // of their dequeues
	open    string   // a bundle that a client has seen, and that no client has begun to dequeue
}

// A seenBundle is a bundle that a client has seen.
type seenBundle struct {
	content string // a line for each message
	entries []push.Entry
	began   bool // a client has begun to dequeue it
	ended   bool // a client has dequeued it
}

// A brokerFetcher fetches the messages of a consumer by any node.
type brokerFetcher struct {
	party
	w      *brokerWorld
	c      *brokerConsumer
	client int // its number in the history of the consumer
}

// fetchMany peeks and dequeues for a while.
func (f *brokerFetcher) fetchMany() error {
	for range 3 + f.d.n(8) {
		if !f.pause(time.Duration(f.d.n(12_000)) * time.Millisecond) {
			return nil
		}
		bundle, err := f.peek(1 + f.d.n(6))
		if err == nil && bundle != "" && f.d.n(3) == 0 {
			bundle, err = f.peek(1 + f.d.n(6))
		}
		if err == nil && f.d.n(4) == 0 {
			err = f.dequeueUnknown()
		}
		if err == nil && bundle != "" && f.d.n(4) > 0 {
			err = f.dequeue(bundle)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *brokerFetcher) credentials() *broker.Credentials {
	return &broker.Credentials{ConsumerToken: f.c.token}
}

// peek asks a node for the bundle of the consumer, and returns its id, "" if it has none or the
// node has not answered.
func (f *brokerFetcher) peek(limit int) (id string, err error) {
	n, ok := f.awaitBroker("peeks")
	if !ok || !f.w.isPut(f.c) {
		return "", nil
	}
	f.w.pmu.Lock()
	open, done := f.c.door.open, make(map[string]bool)
	for id, b := range f.c.door.bundles {
		done[id] = b.ended
	}
	f.w.pmu.Unlock()
	began := f.w.now()
	bundle, err := n.service.Peek(f.w.ctx, f.credentials(), f.c.id, limit, nil)
	f.c.notePeek(f.client, began, bundle, err)
	if err != nil {
		if unexplained(err) != nil {
			return "", fmt.Errorf("a peek of %s fails: %w", f.c.name, err)
		}
		return "", nil
	}
	f.w.pmu.Lock()
	isOpen := open != "" && f.c.door.open == open // all the time
	f.w.pmu.Unlock()
	switch {
	case bundle == nil && isOpen && f.w.plan.consistency == "Strong": // else the read may be old
		return "", fmt.Errorf("P20: a peek of %s finds nothing, and bundle %s is open", f.c.name, open)
	case bundle == nil:
		return "", nil
	case isOpen && bundle.ID != open:
		return "", fmt.Errorf("P20: a peek of %s returns bundle %s, and %s is open", f.c.name, bundle.ID, open)
	case done[bundle.ID]:
		return "", fmt.Errorf("P20: a peek of %s returns bundle %s, which was dequeued before", f.c.name, bundle.ID)
	}
	return bundle.ID, f.c.noteBundle(bundle)
}

// awaitBroker waits for a turn, and returns the broker of a node that runs.
func (f *brokerFetcher) awaitBroker(what string) (*brokerNode, bool) {
	if _, ok := f.turn(what); !ok {
		return nil, false
	}
	n := f.w.anyBroker(f.d)
	return n, n != nil
}

// noteBundle notes a bundle, and compares it with what was sent and with what was seen of it before.
func (c *brokerConsumer) noteBundle(b *broker.Bundle) error {
	seen := &seenBundle{}
	var content strings.Builder
	for _, m := range b.Messages {
		at, _ := domain.ParseMessageID(m.ID)
		e := entryOf(c.stream, at)
		if err := c.checkPlace(e); err != nil {
			return fmt.Errorf("bundle %s of %s has %s: %w", b.ID, c.name, e, err)
		}
		if err := c.w.compareWithSent(e, &seenMessage{string(m.Payload), m.ContentType, m.Metadata}); err != nil {
			return fmt.Errorf("bundle %s of %s has %s: %w", b.ID, c.name, e, err)
		}
		fmt.Fprintf(&content, "%s %s\n", m.ID, m.Payload)
		seen.entries = append(seen.entries, e)
	}
	seen.content = content.String()
	c.w.pmu.Lock()
	defer c.w.pmu.Unlock()
	if c.now > 0 {
		c.w.reached("a bundle was fetched while calls were under way")
	}
	if before := c.door.bundles[b.ID]; before != nil {
		if before.content != seen.content {
			return fmt.Errorf("P20: bundle %s of %s has\n%sand had\n%s", b.ID, c.name, seen.content, before.content)
		}
		c.w.reached("a bundle was fetched again")
		return nil
	}
	for id, other := range c.door.bundles {
		for _, e := range other.entries {
			for _, again := range seen.entries {
				if e == again {
					return fmt.Errorf("P15: bundles %s and %s of %s have %s", id, b.ID, c.name, e)
				}
			}
		}
	}
	c.door.bundles[b.ID], c.door.open = seen, b.ID
	return nil
}

// dequeue dequeues a bundle that was seen. It may repeat that.
func (f *brokerFetcher) dequeue(id string) error {
	w := f.w
	for {
		n, ok := f.awaitBroker("dequeues a bundle")
		if !ok && w.ctx.Err() != nil {
			return nil //nolint:nilerr // the world has ended
		}
		if ok {
			w.pmu.Lock()
			b := f.c.door.bundles[id]
			isAgain := b.ended
			isForgotten := len(f.c.door.order) >= domain.MaxDequeued-1 // perhaps, with bundles whose dequeue has no answer yet
			b.began = true
			if f.c.door.open == id {
				f.c.door.open = ""
			}
			for _, e := range b.entries {
				f.c.fetched[e] = true
			}
			w.pmu.Unlock()
			began := w.now()
			err := n.service.Dequeue(w.ctx, f.credentials(), f.c.id, id)
			f.c.noteDequeue(f.client, began, id, err)
			switch {
			case err == nil && isAgain:
				w.reached("a bundle was dequeued twice")
				return nil
			case err == nil:
				w.pmu.Lock()
				b.ended = true
				f.c.door.order = append(f.c.door.order, id)
				w.pmu.Unlock()
				if f.d.n(3) > 0 {
					return nil
				}
			case domain.KindOf(err) == domain.NotFound && isForgotten:
				return nil
			case domain.KindOf(err) == domain.NotFound || unexplained(err) != nil:
				return fmt.Errorf("P20: bundle %s of %s was fetched, and cannot be dequeued: %w", id, f.c.name, err)
			}
		}
		if !f.pause(time.Second) {
			return nil
		}
	}
}

// dequeueUnknown names a bundle that there is not.
func (f *brokerFetcher) dequeueUnknown() error {
	n, ok := f.awaitBroker("dequeues an unknown bundle")
	if !ok || !f.w.isPut(f.c) {
		return nil
	}
	err := n.service.Dequeue(f.w.ctx, f.credentials(), f.c.id, "unknown")
	if err == nil {
		return fmt.Errorf("P20: %s has dequeued a bundle that there is not", f.c.name)
	}
	return unexplained(err)
}

// checkCaller returns an error if the owner of a cursor calls its consumer with what the consumer has
// fetched. A node that has lost the cursor may have begun before.
func (w *brokerWorld) checkCaller(n *pushNode, cursor domain.CursorID, e push.Entry) error {
	if w.observer.Fetched(cursor.String(), e) && w.observer.Owner(cursor.String()) == n.who {
		return fmt.Errorf("P15: %s calls %s with %s, which the consumer has fetched", n.who, cursor, e)
	}
	return nil
}

// dequeueOpenIfCalm dequeues all bundles after the last fault.
func (w *brokerWorld) dequeueOpenIfCalm(p party) error {
	if !w.isCalm() {
		return nil
	}
	return w.dequeueOpen(p)
}

// dequeueOpen dequeues all bundles that are open, as far as nodes answer.
func (w *brokerWorld) dequeueOpen(p party) error {
	for _, channel := range w.channels {
		for _, c := range channel.consumers {
			f := &brokerFetcher{party: p, w: w, c: c}
			if w.observer.Bundle(c.cursor.String()) == "" {
				continue
			}
			bundle, err := f.peek(1)
			if err == nil && bundle != "" {
				err = f.dequeue(bundle)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
