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
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// An ownedSubscription is a subscription, and what is known of it.
type ownedSubscription struct {
	*pushReceiver // isDeleted since a deletion began
	id            domain.SubscriptionID
	owner         domain.ActorID
	isOrdered     bool

	// Guarded by pushWorld.pmu: the numbers of entries that the topic had, by priority, before the
	// first PUT began, and when the first one was answered; nil before.
	before, answered map[int]int64
}

// addSubscription adds a subscription, which is put later.
func (w *subscriptionWorld) addSubscription() {
	i := len(w.subscriptions)
	s := &ownedSubscription{isOrdered: w.d.n(3) == 0}
	s.id[0], s.id[15] = 1, byte(i) //nolint:gosec // few
	s.owner, _ = domain.ParseActorID(fmt.Sprint("owner-", i))
	s.pushReceiver = w.newReceiverOf(s.id.Cursor(), w.stream, fmt.Sprint("subscription-", i), i)
	if s.isOrdered {
		s.concurrency = 1
	}
	s.check = func(_ *http.Request, body []byte, e push.Entry) error { return w.checkEvent(body, e) }
	w.subscriptions = append(w.subscriptions, s)
}

func (w *subscriptionWorld) find(id domain.SubscriptionID) *ownedSubscription {
	i := slices.IndexFunc(w.subscriptions, func(s *ownedSubscription) bool { return s.id == id })
	return w.subscriptions[i]
}

// draft returns the subscription as its owner wants it. Its changes do not matter to receivers.
func (s *ownedSubscription) draft(d dice) subscribe.Draft {
	return subscribe.Draft{Subscription: domain.Subscription{
		Owner: s.owner, Topic: "prices", CallbackURL: "http://" + s.name + ".example/hook", IsOrdered: s.isOrdered,
		MaxConcurrency: s.concurrency, Method: []string{"POST", "PUT"}[d.n(2)], MaxRate: []float64{0, 0, 5, 50}[d.n(4)],
	}}
}

// untilDone calls act with a node until it succeeds, fails for good, or the world ends.
func (w *subscriptionWorld) untilDone(p *party, what string, act func(n *subscriptionNode) (isDone bool, err error)) error {
	for {
		if _, ok := p.turn(what); !ok {
			return nil
		}
		if n := w.anyNode(p.d); n != nil {
			if isDone, err := act(n.subscriptions); isDone || err != nil {
				return err
			}
		}
		if !p.pause(time.Second) {
			return nil
		}
	}
}

// A subscriptionOwner manages a subscription by any node.
type subscriptionOwner struct {
	party
	w         *subscriptionWorld
	s         *ownedSubscription
	mayDelete bool
}

func (o *subscriptionOwner) manages() error {
	if err := o.put(); err != nil {
		return err
	}
	for range o.d.n(6) {
		if !o.pause(time.Duration(o.d.n(20_000)) * time.Millisecond) {
			return nil
		}
		var err error
		switch o.d.n(4) {
		case 0, 1:
			err = o.put()
			o.w.reached("a subscription was changed while events were published")
		case 2:
			err = o.setPaused(true)
			o.w.reached("a subscription was paused while events were published")
		default:
			err = o.setPaused(false)
		}
		if err != nil {
			return err
		}
	}
	if o.mayDelete && o.d.n(3) == 0 {
		return o.delete()
	}
	return nil
}

// put creates or changes the subscription, and notes what the topic has then.
func (o *subscriptionOwner) put() error {
	w, s := o.w, o.s
	before := w.observer.Published(s.stream.String())
	w.pmu.Lock()
	if s.before == nil {
		s.before = before
	}
	w.pmu.Unlock()
	draft := s.draft(o.d)
	isStored := false
	err := w.untilDone(&o.party, "puts "+s.name, func(n *subscriptionNode) (bool, error) {
		_, _, err := n.owners.Put(w.ctx, s.id, draft, subscribe.Match{})
		isStored = err == nil
		return isStored || domain.KindOf(err) == domain.Conflict && w.isDeleted(s), o.unexplained("put", err)
	})
	if err != nil || !isStored {
		return err
	}
	answered := w.observer.Published(s.stream.String())
	w.pmu.Lock()
	defer w.pmu.Unlock()
	if s.answered == nil {
		s.answered, s.isCreated = answered, true
	}
	return nil
}

// unexplained returns an error that no fault of the world explains.
func (o *subscriptionOwner) unexplained(what string, err error) error {
	switch domain.KindOf(err) {
	case domain.Invalid, domain.Damaged, domain.NewerFormat:
		return fmt.Errorf("%s cannot %s %s: %w", o.who, what, o.s.name, err)
	case domain.NotFound:
		if !o.w.isDeleted(o.s) {
			return fmt.Errorf("%s cannot %s %s, which was put: %w", o.who, what, o.s.name, err)
		}
	default:
	}
	return nil
}

func (o *subscriptionOwner) setPaused(isPaused bool) error {
	return o.w.untilDone(&o.party, fmt.Sprintf("pauses %s: %v", o.s.name, isPaused), func(n *subscriptionNode) (bool, error) {
		_, err := n.owners.SetPaused(o.w.ctx, o.s.owner, o.s.id, isPaused)
		return err == nil || domain.KindOf(err) == domain.NotFound && o.w.isDeleted(o.s), o.unexplained("pause", err)
	})
}

// delete deletes the subscription, and puts it again, which is refused.
func (o *subscriptionOwner) delete() error {
	w, s := o.w, o.s
	w.pmu.Lock()
	s.isDeleted = true
	w.pmu.Unlock()
	err := w.untilDone(&o.party, "deletes "+s.name, func(n *subscriptionNode) (bool, error) {
		_, err := n.owners.Delete(w.ctx, s.owner, s.id, subscribe.Match{})
		return err == nil || domain.KindOf(err) == domain.NotFound, o.unexplained("delete", err)
	})
	if err != nil || w.ctx.Err() != nil || !o.pause(time.Duration(o.d.n(20_000))*time.Millisecond) {
		return err
	}
	return w.untilDone(&o.party, "puts what was deleted", func(n *subscriptionNode) (bool, error) {
		_, _, err := n.owners.Put(w.ctx, s.id, s.draft(o.d), subscribe.Match{})
		if err == nil {
			return false, fmt.Errorf("P18: subscription %s was deleted, and can be put again", s.id)
		}
		return domain.KindOf(err) == domain.Conflict, o.unexplained("put", err)
	})
}

// resumeAll resumes all subscriptions that were not deleted.
func (w *subscriptionWorld) resumeAll(p *party) error {
	for _, s := range w.subscriptions {
		o := &subscriptionOwner{party: *p, w: w, s: s}
		if w.isDeleted(s) {
			continue
		}
		if err := o.setPaused(false); err != nil {
			return err
		}
	}
	return nil
}

// An eventSender publishes events by any node.
type eventSender struct {
	party
	w    *subscriptionWorld
	n    int                // events so far
	sent [][]domain.Message // with ids, that were accepted
}

func (s *eventSender) publishes() error {
	for range 4 + s.d.n(10) {
		if !s.pause(time.Duration(s.d.n(6000)) * time.Millisecond) {
			return nil
		}
		err := s.publish()
		if err == nil && len(s.sent) > 0 && s.d.n(3) == 0 {
			err = s.publishAgain()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// event returns an event whose name no other one has.
func (s *eventSender) event() (m domain.Message) {
	s.n++
	name := fmt.Sprint(s.who, "-", s.n)
	m = domain.Message{
		Priority: []int{0, 0, 4}[s.d.n(3)], ContentType: "application/json",
		Payload: fmt.Appendf(nil, `{"name":%q,"fill":"%0*d"}`, name, s.d.n(300), 0),
	}
	s.w.pmu.Lock()
	defer s.w.pmu.Unlock()
	s.w.events[name] = false
	return m
}

// publish publishes some events. With ids they are sent again until they are accepted; without, only
// if they were not.
func (s *eventSender) publish() error {
	events := make([]domain.Message, 1+s.d.n(5))
	hasIDs := s.d.n(3) > 0
	for i := range events {
		events[i] = s.event()
		if hasIDs {
			events[i].ID = fmt.Sprint("id-", s.who, "-", s.n)
		}
	}
	return s.w.untilDone(&s.party, fmt.Sprintf("publishes %d", len(events)), func(n *subscriptionNode) (bool, error) {
		r, err := n.events.Publish(s.w.ctx, s.w.stream, events)
		if err != nil {
			return domain.KindOf(err) == domain.Uncertain && !hasIDs, s.unexplained(err)
		}
		if r.Accepted+r.Duplicates != len(events) || r.Duplicates > 0 && !hasIDs {
			return false, fmt.Errorf("P19: of %d new events, %d are accepted, %d are duplicates and %d conflicts", len(events), r.Accepted, r.Duplicates, len(r.Conflicts))
		}
		s.w.pmu.Lock()
		defer s.w.pmu.Unlock()
		for i := range events {
			name, err := nameOf(events[i].Payload)
			if err != nil {
				return false, err
			}
			s.w.events[name] = true
		}
		if hasIDs {
			s.sent = append(s.sent, events)
		}
		return true, nil
	})
}

// publishAgain publishes events again, which are duplicates, and perhaps one with other content, which
// is a conflict.
func (s *eventSender) publishAgain() error {
	events := slices.Clone(s.sent[s.d.n(len(s.sent))])
	conflicts := 0
	if s.d.n(2) == 0 {
		other := &events[s.d.n(len(events))]
		other.Payload = []byte(`{"name":"a conflict"}`)
		conflicts = 1
	}
	return s.w.untilDone(&s.party, fmt.Sprintf("publishes %d again", len(events)), func(n *subscriptionNode) (bool, error) {
		r, err := n.events.Publish(s.w.ctx, s.w.stream, events)
		if err != nil {
			return false, s.unexplained(err)
		}
		if r.Accepted > 0 || r.Duplicates != len(events)-conflicts || len(r.Conflicts) != conflicts {
			return false, fmt.Errorf("P19: of %d events that were accepted before, %d of them with other content now, %d are accepted, %d are duplicates and %d conflicts", len(events), conflicts, r.Accepted, r.Duplicates, len(r.Conflicts))
		}
		if conflicts > 0 {
			s.w.reached("an event of a topic came with other content")
		}
		return true, nil
	})
}

func (s *eventSender) unexplained(err error) error {
	switch domain.KindOf(err) {
	case domain.Invalid, domain.Damaged, domain.NewerFormat, domain.NotFound, domain.Conflict:
		return fmt.Errorf("%s cannot publish: %w", s.who, err)
	default:
		return nil
	}
}

// nameOf returns the name of an event.
func nameOf(payload []byte) (string, error) {
	var event struct{ Name string }
	err := json.Unmarshal(payload, &event)
	return event.Name, err
}

// checkEvent returns an error if a call has another event than a call before with the same entry, or
// one that no sender has sent, or that has another entry, too.
func (w *subscriptionWorld) checkEvent(body []byte, e push.Entry) error {
	_, payload, isThere := bytes.Cut(body, []byte(`{"name":`))
	name := ""
	if isThere {
		quoted, _, _ := bytes.Cut(payload, []byte(`,`))
		if err := json.Unmarshal(quoted, &name); err != nil {
			return err
		}
	}
	w.pmu.Lock()
	defer w.pmu.Unlock()
	_, isSent := w.events[name]
	before, isKnown := w.entries[name]
	switch {
	case !isSent:
		return errors.New("P19: no sender has sent " + name)
	case isKnown && before != e:
		return fmt.Errorf("P19: the event %s is %s, too", name, before)
	}
	w.entries[name] = e
	return nil
}
