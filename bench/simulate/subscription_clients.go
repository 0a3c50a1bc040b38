package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// An ownedSubscription is a subscription and its receiver.
type ownedSubscription struct {
	*pushReceiver // here isDeleted is true after the first request to delete the subscription
	id            domain.SubscriptionID
	owner         domain.ActorID
	isOrdered     bool

	// before and answered are the numbers of entries of the topic by priority, when the first PUT began and when it
	// succeeded. Each is nil until that time. Guarded by pushSimulation.pmu.
	before, answered map[int]int64
}

// addSubscription adds a subscription to the configuration. An owner puts the subscription later.
func (sim *subscriptionSimulation) addSubscription() {
	i := len(sim.subscriptions)
	s := &ownedSubscription{isOrdered: sim.rng.IntN(3) == 0}
	s.id[0], s.id[15] = 1, byte(i) //nolint:gosec // few
	s.owner, _ = domain.ParseActorID(fmt.Sprint("owner-", i))
	s.pushReceiver = sim.newReceiver(s.id.Cursor(), sim.stream, fmt.Sprint("subscription-", i), i)
	if s.isOrdered {
		s.concurrency = 1
	}
	s.check = func(_ *http.Request, body []byte, e push.Entry) error { return sim.checkEvent(body, e) }
	sim.subscriptions = append(sim.subscriptions, s)
}

func (sim *subscriptionSimulation) findSubscription(id domain.SubscriptionID) *ownedSubscription {
	i := slices.IndexFunc(sim.subscriptions, func(s *ownedSubscription) bool { return s.id == id })
	return sim.subscriptions[i]
}

// newDraft returns a draft of the subscription. Drafts differ only in fields that do not affect receivers.
func (s *ownedSubscription) newDraft(rng random.Source) subscribe.Draft {
	return subscribe.Draft{Subscription: domain.Subscription{
		Owner: s.owner, Topic: "prices", CallbackURL: "http://" + s.name + ".example/hook", IsOrdered: s.isOrdered,
		MaxConcurrency: s.concurrency, Method: []string{"POST", "PUT"}[rng.IntN(2)], MaxRate: []float64{0, 0, 5, 50}[rng.IntN(4)],
	}}
}

// callUntilDone calls act with a node until act succeeds or fails permanently, or the simulation ends.
func (sim *subscriptionSimulation) callUntilDone(p *baseClient, what string, act func(n *subscriptionNode) (isDone bool, err error)) error {
	for {
		if _, ok := p.awaitTurn(what); !ok {
			return nil
		}
		if n := sim.anyNode(p.rng); n != nil {
			if isDone, err := act(n.subscriptions); isDone || err != nil {
				return err
			}
		}
		if !p.pause(time.Second) {
			return nil
		}
	}
}

// A subscriptionOwner manages a subscription through any node.
type subscriptionOwner struct {
	baseClient
	sim          *subscriptionSimulation
	subscription *ownedSubscription
	mayDelete    bool
}

func (o *subscriptionOwner) manageMany() error {
	if err := o.putSubscription(); err != nil {
		return err
	}
	for range o.rng.IntN(6) {
		if !o.pause(time.Duration(o.rng.IntN(20_000)) * time.Millisecond) {
			return nil
		}
		var err error
		switch o.rng.IntN(4) {
		case 0, 1:
			err = o.putSubscription()
			o.sim.MarkReached("a subscription was changed while events were published")
		case 2:
			err = o.setPaused(true)
			o.sim.MarkReached("a subscription was paused while events were published")
		default:
			err = o.setPaused(false)
		}
		if err != nil {
			return err
		}
	}
	if o.mayDelete && o.rng.IntN(3) == 0 {
		return o.deleteSubscription()
	}
	return nil
}

// putSubscription creates or changes the subscription. It records the number of entries of the topic before and after
// the PUT.
func (o *subscriptionOwner) putSubscription() error {
	sim, s := o.sim, o.subscription
	before := sim.observer.Published(s.stream.String())
	sim.pmu.Lock()
	if s.before == nil {
		s.before = before
	}
	sim.pmu.Unlock()
	draft := s.newDraft(o.rng)
	isStored := false
	err := sim.callUntilDone(&o.baseClient, "puts "+s.name, func(n *subscriptionNode) (bool, error) {
		_, _, err := n.owners.Put(sim.ctx, s.id, draft, subscribe.Match{})
		isStored = err == nil
		return isStored || domain.KindOf(err) == domain.Conflict && sim.isDeleted(s), o.unexplainedError("put", err)
	})
	if err != nil || !isStored {
		return err
	}
	answered := sim.observer.Published(s.stream.String())
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	if s.answered == nil {
		s.answered, s.isCreated = answered, true
	}
	return nil
}

// unexplainedError returns an error if no injected fault explains err.
func (o *subscriptionOwner) unexplainedError(what string, err error) error {
	switch domain.KindOf(err) {
	case domain.Invalid, domain.Damaged, domain.NewerFormat:
		return fmt.Errorf("%s cannot %s %s: %w", o.who, what, o.subscription.name, err)
	case domain.NotFound:
		if !o.sim.isDeleted(o.subscription) {
			return fmt.Errorf("%s cannot %s %s, which was created: %w", o.who, what, o.subscription.name, err)
		}
	default:
	}
	return nil
}

func (o *subscriptionOwner) setPaused(isPaused bool) error {
	return o.sim.callUntilDone(&o.baseClient, fmt.Sprintf("pauses %s: %v", o.subscription.name, isPaused), func(n *subscriptionNode) (bool, error) {
		_, err := n.owners.SetPaused(o.sim.ctx, o.subscription.owner, o.subscription.id, isPaused)
		return err == nil || domain.KindOf(err) == domain.NotFound && o.sim.isDeleted(o.subscription), o.unexplainedError("pause", err)
	})
}

// deleteSubscription deletes the subscription, and checks that a later PUT is refused.
func (o *subscriptionOwner) deleteSubscription() error {
	sim, s := o.sim, o.subscription
	sim.pmu.Lock()
	s.isDeleted = true
	sim.pmu.Unlock()
	err := sim.callUntilDone(&o.baseClient, "deletes "+s.name, func(n *subscriptionNode) (bool, error) {
		_, err := n.owners.Delete(sim.ctx, s.owner, s.id, subscribe.Match{})
		return err == nil || domain.KindOf(err) == domain.NotFound, o.unexplainedError("delete", err)
	})
	if err != nil || sim.ctx.Err() != nil || !o.pause(time.Duration(o.rng.IntN(20_000))*time.Millisecond) {
		return err
	}
	return sim.callUntilDone(&o.baseClient, "puts what was deleted", func(n *subscriptionNode) (bool, error) {
		_, _, err := n.owners.Put(sim.ctx, s.id, s.newDraft(o.rng), subscribe.Match{})
		if err == nil {
			return false, fmt.Errorf("P18: subscription %s was deleted, but a PUT succeeded", s.id)
		}
		return domain.KindOf(err) == domain.Conflict, o.unexplainedError("put", err)
	})
}

// resumeAll resumes all subscriptions that are not deleted.
func (sim *subscriptionSimulation) resumeAll(p *baseClient) error {
	for _, s := range sim.subscriptions {
		o := &subscriptionOwner{baseClient: *p, sim: sim, subscription: s}
		if sim.isDeleted(s) {
			continue
		}
		if err := o.setPaused(false); err != nil {
			return err
		}
	}
	return nil
}

// An eventSender publishes events through any node.
type eventSender struct {
	baseClient
	sim        *subscriptionSimulation
	eventCount int                // number of events so far
	sent       [][]domain.Message // accepted events with ids
}

func (s *eventSender) publishMany() error {
	for range 4 + s.rng.IntN(10) {
		if !s.pause(time.Duration(s.rng.IntN(6000)) * time.Millisecond) {
			return nil
		}
		err := s.publishNew()
		if err == nil && len(s.sent) > 0 && s.rng.IntN(3) == 0 {
			err = s.publishAgain()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newEvent returns an event with a unique name.
func (s *eventSender) newEvent() (m domain.Message) {
	s.eventCount++
	name := fmt.Sprint(s.who, "-", s.eventCount)
	m = domain.Message{
		Priority: []int{0, 0, 4}[s.rng.IntN(3)], ContentType: "application/json",
		Payload: fmt.Appendf(nil, `{"name":%q,"fill":"%0*d"}`, name, s.rng.IntN(300), 0),
	}
	s.sim.pmu.Lock()
	defer s.sim.pmu.Unlock()
	s.sim.events[name] = false
	return m
}

// publishNew publishes several events. Events with ids are repeated until they are accepted; events without ids are
// repeated only if they were certainly not stored.
func (s *eventSender) publishNew() error {
	events := make([]domain.Message, 1+s.rng.IntN(5))
	hasIDs := s.rng.IntN(3) > 0
	for i := range events {
		events[i] = s.newEvent()
		if hasIDs {
			events[i].ID = fmt.Sprint("id-", s.who, "-", s.eventCount)
		}
	}
	return s.sim.callUntilDone(&s.baseClient, fmt.Sprintf("publishes %d", len(events)), func(n *subscriptionNode) (bool, error) {
		r, err := n.events.Publish(s.sim.ctx, s.sim.stream, events)
		if err != nil {
			return domain.KindOf(err) == domain.Uncertain && !hasIDs, s.unexplainedError(err)
		}
		if r.Accepted+r.Duplicates != len(events) || r.Duplicates > 0 && !hasIDs {
			return false, fmt.Errorf("P19: of %d new events, %d were accepted, %d were duplicates and %d conflicts", len(events), r.Accepted, r.Duplicates, len(r.Conflicts))
		}
		s.sim.pmu.Lock()
		defer s.sim.pmu.Unlock()
		for i := range events {
			name, err := nameOf(events[i].Payload)
			if err != nil {
				return false, err
			}
			s.sim.events[name] = true
		}
		if hasIDs {
			s.sent = append(s.sent, events)
		}
		return true, nil
	})
}

// publishAgain repeats accepted events, which the node must report as duplicates. Sometimes it changes the content of
// one event, which the node must report as a conflict.
func (s *eventSender) publishAgain() error {
	events := slices.Clone(s.sent[s.rng.IntN(len(s.sent))])
	conflicts := 0
	if s.rng.IntN(2) == 0 {
		other := &events[s.rng.IntN(len(events))]
		other.Payload = []byte(`{"name":"a conflict"}`)
		conflicts = 1
	}
	return s.sim.callUntilDone(&s.baseClient, fmt.Sprintf("publishes %d again", len(events)), func(n *subscriptionNode) (bool, error) {
		r, err := n.events.Publish(s.sim.ctx, s.sim.stream, events)
		if err != nil {
			return false, s.unexplainedError(err)
		}
		if r.Accepted > 0 || r.Duplicates != len(events)-conflicts || len(r.Conflicts) != conflicts {
			return false, fmt.Errorf("P19: of %d repeated events, %d of them with different content, %d were accepted, %d were duplicates and %d conflicts", len(events), conflicts, r.Accepted, r.Duplicates, len(r.Conflicts))
		}
		if conflicts > 0 {
			s.sim.MarkReached("an event of a topic came with other content")
		}
		return true, nil
	})
}

func (s *eventSender) unexplainedError(err error) error {
	switch domain.KindOf(err) {
	case domain.Invalid, domain.Damaged, domain.NewerFormat, domain.NotFound, domain.Conflict:
		return fmt.Errorf("%s cannot publish: %w", s.who, err)
	default:
		return nil
	}
}

// nameOf returns the event name that a payload contains.
func nameOf(payload []byte) (string, error) {
	var event struct{ Name string }
	err := json.Unmarshal(payload, &event)
	return event.Name, err
}

// checkEvent returns an error if the event in a call was never sent, or if an earlier call contained the same event
// with a different entry.
func (sim *subscriptionSimulation) checkEvent(body []byte, e push.Entry) error {
	_, payload, isThere := bytes.Cut(body, []byte(`{"name":`))
	name := ""
	if isThere {
		quoted, _, _ := bytes.Cut(payload, []byte(`,`))
		if err := json.Unmarshal(quoted, &name); err != nil {
			return err
		}
	}
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	_, isSent := sim.events[name]
	before, isKnown := sim.entries[name]
	switch {
	case !isSent:
		return errors.New("P19: no sender has sent " + name)
	case isKnown && before != e:
		return fmt.Errorf("P19: event %s is also entry %s", name, before)
	}
	sim.entries[name] = e
	return nil
}
