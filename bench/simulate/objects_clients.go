package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An objectCarrier delivers messages to random nodes. It repeats each message until all events of the message are
// stored.
type objectCarrier struct {
	baseClient
	sim *objectSimulation
}

func (c *objectCarrier) deliverAll() {
	for c.sim.ctx.Err() == nil {
		m := c.sim.takeMessage()
		if m == nil {
			select {
			case <-c.sim.delivered:
				return
			default:
			}
		} else {
			isDone, err := c.deliverOnce(m)
			if err != nil {
				c.sim.Fail(err)
			}
			if c.sim.putBack(m, isDone); isDone {
				continue
			}
		}
		if !c.pause(time.Second) {
			return
		}
	}
}

// deliverOnce delivers a message once. isDone is true if all events in the message are stored.
func (c *objectCarrier) deliverOnce(m *objectMessage) (isDone bool, err error) {
	if _, ok := c.awaitTurn("delivers " + m.name); !ok {
		return false, nil
	}
	n := c.sim.nodeAt(c.rng.IntN(objectNodes))
	if n == nil {
		return false, nil
	}
	before := c.sim.commitsOf(m)
	results := c.ingestAt(n, m)
	lost, ok := c.awaitTurn("is answered", scheduler.Fault{Name: "answer lost"})
	if !ok {
		return false, nil
	}
	c.sim.noteForgotten(m, before)
	if results == nil || lost != "" {
		c.sim.noteUnsure(m)
		return false, nil
	}
	return c.sim.noteResults(m, results)
}

// ingestAt makes node n ingest a message. It returns nil if the node was killed or the call timed out.
func (c *objectCarrier) ingestAt(n *objectNode, m *objectMessage) []repository.ObjectResult {
	answer := make(chan []repository.ObjectResult, 1)
	if !n.call(func(ctx context.Context) {
		results, err := n.store.Ingest(ctx, m.reports)
		if err != nil && ctx.Err() == nil {
			c.sim.Fail(fmt.Errorf("%s: a call failed before its context ended: %w", n.who, err))
		}
		answer <- results
	}) {
		return nil
	}
	return <-answer
}

func (sim *objectSimulation) commitsOf(m *objectMessage) map[domain.ObjectName]int {
	commits := make(map[domain.ObjectName]int)
	for i := range m.reports {
		name := m.reports[i].Name
		commits[name] = sim.observer.Commits(name.Bucket(), name.Key())
	}
	return commits
}

// eachTally calls f with the tally of each event of a message.
func (sim *objectSimulation) eachTally(m *objectMessage, f func(i int, t *eventTally)) {
	sim.omu.Lock()
	defer sim.omu.Unlock()
	for i := range m.reports {
		f(i, sim.findObject(m.reports[i].Name).events[m.reports[i].ID()])
	}
}

// noteForgotten records deliveries that may have been applied twice. This can happen because an object stores only the
// ids of its last writes: if many writes were committed during the call, the id of the call's first write is no longer
// stored.
func (sim *objectSimulation) noteForgotten(m *objectMessage, before map[domain.ObjectName]int) {
	after := sim.commitsOf(m)
	sim.eachTally(m, func(i int, t *eventTally) {
		name := m.reports[i].Name
		t.repeats += (after[name] - before[name]) / domain.MaxObjectWrites
	})
}

// noteUnsure records a call with an unknown outcome.
func (sim *objectSimulation) noteUnsure(m *objectMessage) {
	sim.eachTally(m, func(i int, t *eventTally) {
		if !m.isRepeat(i) {
			t.unsure++
		}
	})
}

// isRepeat reports whether the i-th event also occurs earlier in the message.
func (m *objectMessage) isRepeat(i int) bool {
	r := &m.reports[i]
	return slices.ContainsFunc(m.reports[:i], func(other repository.ObjectReport) bool { return other.Name == r.Name && other.ID() == r.ID() })
}

// noteResults records the results of a call, and returns an error if no injected fault explains them. isDone is true if
// all events in the message are stored.
func (sim *objectSimulation) noteResults(m *objectMessage, results []repository.ObjectResult) (isDone bool, err error) {
	isDone = true
	sim.eachTally(m, func(i int, t *eventTally) {
		r := results[i]
		switch domain.KindOf(r.Err) {
		case domain.Uncertain:
			isDone = false
			if !m.isRepeat(i) {
				t.unsure++
			}
			return
		case domain.Unavailable, domain.Busy: // not stored
			isDone = false
			return
		default:
		}
		switch {
		case r.Err != nil:
			isDone, err = false, fmt.Errorf("event %d of %s failed: %w", i, m.name, r.Err)
		case r.Outcome == domain.ObjectTooOld && sim.plan.retention > 0:
			sim.MarkReached("an event was too old")
			t.repeats++ // an earlier attempt of the call may have counted the event, and then a stale read missed the object
		case m.isRepeat(i) && r.Outcome != domain.ObjectDuplicate:
			err = fmt.Errorf("L5: event %d of %s is twice in the message, but the outcome of the second one is %d", i, m.name, r.Outcome)
		case m.isRepeat(i):
		case r.Outcome == domain.ObjectStored:
			t.stored++
		case r.Outcome == domain.ObjectDuplicate:
			t.known++
		default:
			err = fmt.Errorf("event %d of %s has no outcome", i, m.name)
		}
	})
	return isDone, err
}

// An objectReader reads objects from random nodes. A read may be stale, but must never report damage.
type objectReader struct {
	baseClient
	sim *objectSimulation
}

func (r *objectReader) readUntilDelivered() {
	for r.pause(time.Duration(1+r.rng.IntN(4000)) * time.Millisecond) {
		select {
		case <-r.sim.delivered:
			return
		default:
		}
		if _, ok := r.awaitTurn("reads"); !ok {
			return
		}
		n := r.sim.nodeAt(r.rng.IntN(objectNodes))
		if n == nil {
			continue
		}
		if err := r.readOnce(n); err != nil {
			r.sim.Fail(fmt.Errorf("reader, at %s: %w", n.who, err))
		}
	}
}

func (r *objectReader) readOnce(n *objectNode) error {
	name := r.sim.buckets[r.rng.IntN(len(r.sim.buckets))].name
	switch r.rng.IntN(3) {
	case 0:
		o, err := n.store.Object(r.sim.ctx, name)
		if err == nil && o.Spilled == 0 && o.Current != nil && domain.CurrentRow(o.Rows) < 0 {
			return fmt.Errorf("L3: %s has the current row %+v, but its rows do not have one", name.Key(), o.Current)
		}
		return unexplainedRead(err)
	case 1:
		rows, err := n.store.History(r.sim.ctx, name, domain.ObjectOrder{}, 1+r.rng.IntN(20))
		if !slices.IsSortedFunc(rows, func(a, b domain.ObjectRow) int { return domain.CompareObjectRows(b, a) }) {
			return fmt.Errorf("the history of %s is not in order", name.Key())
		}
		return unexplainedRead(err)
	}
	page, err := n.store.List(r.sim.ctx, repository.ObjectRange{Bucket: objectBucket}, 10)
	if !slices.IsSortedFunc(page.Objects, func(a, b domain.Object) int { return domain.CompareObjectNames(a.Name, b.Name) }) {
		return fmt.Errorf("the list is not in order: %+v", page)
	}
	return unexplainedRead(err)
}

// unexplainedRead returns err if no injected fault explains it, and nil otherwise.
func unexplainedRead(err error) error {
	switch domain.KindOf(err) {
	case domain.Unavailable, domain.Busy, domain.NotFound:
		return nil
	default:
		return err
	}
}
