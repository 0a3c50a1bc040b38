package simulate

import (
	"fmt"
	"sync"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
)

// A subscriptionSimulation is a push simulation of subscriptions: owners create, change, pause and delete subscriptions
// while senders publish events, some repeatedly or with different content. One seed in three has a subscription
// simulation.
type subscriptionSimulation struct {
	*pushSimulation
	subscriptions []*ownedSubscription

	// The fields below are guarded by pushSimulation.pmu.
	entries map[string]push.Entry // entries that receivers received, by name of the event
	events  map[string]bool       // events by name; true if the event was accepted
}

const (
	// subscriptionFaults is the offset of fault numbers in a subscription simulation.
	subscriptionFaults = 3_000_000
	// subscriptionPurposes is added to the purpose of each random source of a subscription simulation.
	subscriptionPurposes = 20_000
)

// hasSubscriptions reports whether a seed has a subscription simulation.
func hasSubscriptions(seed uint64) bool {
	return random.New(seed, subscriptionPurposes+500).IntN(3) == 0
}

func newSubscriptionSimulation(o *Options) (*subscriptionSimulation, error) {
	p, err := newPushSimulation(o, subscriptionPurposes, subscriptionFaults)
	if err != nil {
		return nil, err
	}
	sim := &subscriptionSimulation{pushSimulation: p, entries: make(map[string]push.Entry), events: make(map[string]bool)}
	p.subscriptions, p.workload, p.describeUnfinished = sim, sim.publishWhileOwnersAct, sim.describeUnretired
	p.Profile.LastStep = 300 + p.rng.IntN(1000)
	for range 2 + p.rng.IntN(3) {
		sim.addSubscription()
	}
	return sim, nil
}

// publishWhileOwnersAct runs all clients until every delivery has ended.
func (sim *subscriptionSimulation) publishWhileOwnersAct() error {
	var acts []func() error
	use := func(kind, i int) uint64 { return uint64(subscriptionPurposes + kind + i) } //nolint:gosec // positive
	for i, s := range sim.subscriptions {
		for k := range 1 + sim.rng.IntN(2) { // two owners may act at the same time
			o := &subscriptionOwner{baseClient: sim.newClient(fmt.Sprintf("owner-%d-%d", i, k), use(1000+100*k, i)), sim: sim, subscription: s, mayDelete: k == 0}
			acts = append(acts, o.manageMany)
		}
	}
	for i := range 1 + sim.rng.IntN(3) {
		s := &eventSender{baseClient: sim.newClient(fmt.Sprint("sender-", i), use(1500, i)), sim: sim}
		acts = append(acts, s.publishMany)
	}
	failures := make([]error, len(acts))
	var all sync.WaitGroup
	for i, act := range acts {
		sim.background.Add(1)
		all.Go(func() { defer sim.background.Done(); failures[i] = act() })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil || sim.ctx.Err() != nil {
			return err
		}
	}
	last := sim.newClient("owner", subscriptionPurposes+510)
	if err := sim.resumeAll(&last); err != nil || sim.ctx.Err() != nil {
		return err
	}
	if err := sim.awaitDeliveries(&last, func() error { return nil }); err != nil || sim.ctx.Err() != nil {
		return err
	}
	if err := sim.verifyReceivers(); err != nil {
		return err
	}
	return sim.verifySubscriptions()
}

// describeUnretired describes a deleted subscription whose cursor is not retired, or returns "".
func (sim *subscriptionSimulation) describeUnretired() string {
	for _, s := range sim.subscriptions {
		if sim.isDeleted(s) && !sim.observer.IsRetired(s.cursor.String()) {
			return fmt.Sprintf("subscription %s was deleted, and its cursor is not retired", s.id)
		}
	}
	return ""
}

func (sim *subscriptionSimulation) isDeleted(s *ownedSubscription) bool {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	return s.isDeleted
}

// verifySubscriptions compares the results that owners and senders received with the stored entries.
func (sim *subscriptionSimulation) verifySubscriptions() error {
	total := int(sim.countPublished(sim.stream))
	begins := make([]map[int]int64, len(sim.subscriptions))
	for i, s := range sim.subscriptions {
		begins[i] = sim.observer.Begin(s.cursor.String())
	}
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	accepted := 0
	for _, isAccepted := range sim.events {
		if isAccepted {
			accepted++
		}
	}
	// An event with an unknown outcome may be stored at most once.
	if total < accepted || total > len(sim.events) {
		return fmt.Errorf("P19: %d of %d events were accepted, but %d are stored", accepted, len(sim.events), total)
	}
	for i, s := range sim.subscriptions {
		for p := range domain.Priorities {
			if n := begins[i][p]; n < s.before[p] || n > s.answered[p] {
				return fmt.Errorf("P18: subscription %s begins with event %d of priority %d, want one between %d, its position at the PUT, and %d, its position after the response", s.id, n, p, s.before[p], s.answered[p])
			}
		}
		if s.isDeleted {
			sim.MarkReached("a subscription was retired")
		}
	}
	return nil
}

// runSubscriptions runs the subscription simulation of a seed in a synctest bubble.
func runSubscriptions(o *Options) (r Result) {
	sim, err := newSubscriptionSimulation(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = sim.runToEnd(); err != nil {
		err = fmt.Errorf("subscriptions: %w", err)
	}
	return sim.newResult(err)
}
