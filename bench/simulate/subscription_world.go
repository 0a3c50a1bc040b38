package simulate

import (
	"fmt"
	"sync"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/domain"
)

// A subscriptionWorld is a push world of subscriptions: owners create, change, pause and delete them
// while senders publish events, some of them again, or with other content. Some seeds have one
// besides their other worlds.
type subscriptionWorld struct {
	*pushWorld
	subscriptions []*ownedSubscription

	// Guarded by pushWorld.pmu.
	entries map[string]push.Entry // by the name of the event, as receivers have seen it
	events  map[string]bool       // by name: whether it was accepted
}

const (
	// subscriptionFaults is the number before the first fault of a world of subscriptions.
	subscriptionFaults = 3_000_000
	// subscriptionUses is added to the use of each dice.
	subscriptionUses = 20_000
)

// hasSubscriptions reports whether a seed has a world of subscriptions.
func hasSubscriptions(seed uint64) bool { return newDice(seed, subscriptionUses+500).n(3) == 0 }

func newSubscriptionWorld(o *Options) (*subscriptionWorld, error) {
	p, err := newPushWorld(o, subscriptionUses, subscriptionFaults)
	if err != nil {
		return nil, err
	}
	w := &subscriptionWorld{pushWorld: p, entries: make(map[string]push.Entry), events: make(map[string]bool)}
	p.subscriptions, p.course, p.unfinished = w, w.publishWhileOwnersAct, w.unretired
	p.weather.lasts = 300 + p.d.n(1000)
	for range 2 + p.d.n(3) {
		w.addSubscription()
	}
	return w, nil
}

// publishWhileOwnersAct lets all parties act, until nothing is left to deliver.
func (w *subscriptionWorld) publishWhileOwnersAct() error {
	var acts []func() error
	use := func(kind, i int) uint64 { return uint64(subscriptionUses + kind + i) } //nolint:gosec // positive
	for i, s := range w.subscriptions {
		for k := range 1 + w.d.n(2) { // who may meet
			o := &subscriptionOwner{party: w.newParty(fmt.Sprintf("owner-%d-%d", i, k), use(1000+100*k, i)), w: w, s: s, mayDelete: k == 0}
			acts = append(acts, o.manages)
		}
	}
	for i := range 1 + w.d.n(3) {
		s := &eventSender{party: w.newParty(fmt.Sprint("sender-", i), use(1500, i)), w: w}
		acts = append(acts, s.publishes)
	}
	failures := make([]error, len(acts))
	var all sync.WaitGroup
	for i, act := range acts {
		w.ghosts.Add(1)
		all.Go(func() { defer w.ghosts.Done(); failures[i] = act() })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil || w.ctx.Err() != nil {
			return err
		}
	}
	last := w.newParty("owner", subscriptionUses+510)
	if err := w.resumeAll(&last); err != nil || w.ctx.Err() != nil {
		return err
	}
	if err := w.ends(&last, func() error { return nil }); err != nil || w.ctx.Err() != nil {
		return err
	}
	if err := w.judge(); err != nil {
		return err
	}
	return w.judgeSubscriptions()
}

// unretired describes a subscription that was deleted, and whose cursor is not retired, or "".
func (w *subscriptionWorld) unretired() string {
	for _, s := range w.subscriptions {
		if w.isDeleted(s) && !w.observer.IsRetired(s.cursor.String()) {
			return fmt.Sprintf("subscription %s was deleted, and its cursor is not retired", s.id)
		}
	}
	return ""
}

func (w *subscriptionWorld) isDeleted(s *ownedSubscription) bool {
	w.pmu.Lock()
	defer w.pmu.Unlock()
	return s.isDeleted
}

// judgeSubscriptions compares what subscriptions and senders were answered with what has happened.
func (w *subscriptionWorld) judgeSubscriptions() error {
	total := int(w.published(w.stream))
	begins := make([]map[int]int64, len(w.subscriptions))
	for i, s := range w.subscriptions {
		begins[i] = w.observer.Begin(s.cursor.String())
	}
	w.pmu.Lock()
	defer w.pmu.Unlock()
	accepted := 0
	for _, isAccepted := range w.events {
		if isAccepted {
			accepted++
		}
	}
	// An event of which it is not known whether it was accepted may be stored, once.
	if total < accepted || total > len(w.events) {
		return fmt.Errorf("P19: %d of %d events were accepted, and %d are stored", accepted, len(w.events), total)
	}
	for i, s := range w.subscriptions {
		for p := range domain.Priorities {
			if n := begins[i][p]; n < s.before[p] || n > s.answered[p] {
				return fmt.Errorf("P18: subscription %s begins with event %d of priority %d, want one between %d, when it was put, and %d, when that was answered", s.id, n, p, s.before[p], s.answered[p])
			}
		}
		if s.isDeleted {
			w.reached("a subscription was retired")
		}
	}
	return nil
}

// simulateSubscriptions lets the world of subscriptions of a seed run, in a bubble.
func simulateSubscriptions(o *Options) (r Result) {
	w, err := newSubscriptionWorld(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = w.simulate(); err != nil {
		err = fmt.Errorf("subscriptions: %w", err)
	}
	return w.result(err)
}
