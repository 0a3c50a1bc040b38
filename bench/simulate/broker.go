package simulate

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// A brokerSimulation is a push simulation of channels: producers send messages to channels. The nodes deliver the
// messages by calls of the consumers, or the consumers fetch them. One seed in three has a broker simulation.
type brokerSimulation struct {
	*pushSimulation
	keys      *subscribe.Keyring
	producers []domain.PartyID
	channels  []*brokerChannel
	rotation  *tokenRotation // nil if no token is replaced
	ticks     atomic.Int64   // clock of the consumers' histories

	// The fields below are guarded by pushSimulation.pmu.
	sent     map[string]*sentMessage // by payload
	payloads map[push.Entry]string   // payloads that consumers or readers received, by entry
	created  map[domain.PartyID]bool // parties whose creation by a PUT was confirmed
}

// A brokerChannel is a channel and its consumers.
type brokerChannel struct {
	id        domain.PartyID
	consumers []*brokerConsumer
	// configured is the number of consumers that are put before the first message is sent. The remaining consumers are
	// put later.
	configured int
}

const (
	// brokerFaults is the offset of fault numbers in a broker simulation.
	brokerFaults = 2_000_000
	// brokerPurposes is added to the purpose of each random source of a broker simulation.
	brokerPurposes = 10_000
)

// hasBroker reports whether a seed has a broker simulation.
func hasBroker(seed uint64) bool { return random.New(seed, brokerPurposes+500).IntN(3) == 0 }

func newBrokerSimulation(o *Options) (*brokerSimulation, error) {
	p, err := newPushSimulation(o, brokerPurposes, brokerFaults)
	if err != nil {
		return nil, err
	}
	sim := &brokerSimulation{pushSimulation: p, sent: make(map[string]*sentMessage), payloads: make(map[push.Entry]string), created: make(map[domain.PartyID]bool)}
	p.broker, p.workload, p.attempts = sim, sim.broadcastAll, 1+brokerRetries
	p.Profile.LastStep = 300 + p.rng.IntN(1500)
	if p.failSafe.hasDisabled() && p.failSafe.recovery == byAsking && p.failSafe.rng.IntN(2) == 0 {
		p.failSafe.recovery, p.failSafe.isDisabled = byWorker, [pushNodes]bool{true, true}
	}
	sim.keys, err = subscribe.NewKeyring(subscribe.NewKey())
	for i := range 1 + p.rng.IntN(2) {
		producer, failure := domain.Producers.Parse(fmt.Sprint("producer-", i))
		err = errors.Join(err, failure)
		sim.producers = append(sim.producers, producer)
	}
	for i := range 1 + p.rng.IntN(2) {
		channel, failure := domain.Channels.Parse(fmt.Sprint("channel-", i))
		c := &brokerChannel{id: channel}
		sim.channels = append(sim.channels, c)
		err = errors.Join(err, failure)
		for range 1 + min(p.rng.IntN(5), p.rng.IntN(5)) {
			err = errors.Join(err, sim.addConsumer(c))
		}
		c.configured = min(p.rng.IntN(len(c.consumers)+1), len(c.consumers))
	}
	if p.rng.IntN(3) == 0 {
		var failure error
		sim.rotation, failure = sim.newTokenRotation()
		err = errors.Join(err, failure)
	}
	return sim, err
}

// broadcastAll runs all clients, which put parties and broadcast messages. It returns when every delivery has ended.
func (sim *brokerSimulation) broadcastAll() error {
	owner := sim.newClient("owner", brokerPurposes+510)
	if err := sim.runTogether(sim.newSyncs()...); err != nil || sim.ctx.Err() != nil {
		return err
	}
	if err := sim.runTogether(sim.newActivities()...); err != nil || sim.ctx.Err() != nil {
		return err
	}
	if err := sim.awaitDeliveries(&owner, func() error { return sim.dequeueOpenAfterFaults(owner) }); err != nil || sim.ctx.Err() != nil {
		return err
	}
	return errors.Join(sim.verifyReceivers(), sim.verifyMessages(&owner), sim.verifyHistories())
}

// brokerPurpose returns the purpose of the random source of the i-th client of a kind.
func brokerPurpose(kind, i int) uint64 { return uint64(brokerPurposes + kind + i) } //nolint:gosec // positive

// newSyncs returns one to three activities, all of which put the same parties.
func (sim *brokerSimulation) newSyncs() (acts []func() error) {
	for i := range 1 + sim.rng.IntN(3) {
		m := &brokerManager{baseClient: sim.newClient(fmt.Sprint("sync-", i), brokerPurpose(1000, i)), sim: sim}
		acts = append(acts, m.putAll)
	}
	return acts
}

// newActivities returns the activities that the clients run concurrently.
func (sim *brokerSimulation) newActivities() (acts []func() error) {
	for i := range 1 + sim.rng.IntN(3) {
		p := &brokerProducer{baseClient: sim.newClient(fmt.Sprint("sender-", i), brokerPurpose(1100, i)), sim: sim}
		acts = append(acts, p.broadcastMany)
	}
	if sim.failSafe.hasDisabled() {
		p := &brokerProducer{baseClient: sim.newClient("sender-late", brokerPurpose(1100, 50)), sim: sim}
		acts = append(acts, p.broadcastLate)
	}
	i := 0
	for _, channel := range sim.channels {
		for j, c := range channel.consumers {
			managers := sim.rng.IntN(2) // number of managers that put a consumer which already exists
			if j >= channel.configured {
				managers = 1 + sim.rng.IntN(2) // two managers may put a consumer at the same time
			}
			for k := range managers {
				m := &brokerManager{baseClient: sim.newClient(fmt.Sprintf("manager-%d-%d", i, k), brokerPurpose(1200+100*k, i)), sim: sim}
				acts = append(acts, func() error { return m.putLate(c) })
			}
			if sim.rng.IntN(2) == 0 {
				for k := range 1 + sim.rng.IntN(2) {
					f := &brokerFetcher{baseClient: sim.newClient(fmt.Sprintf("fetcher-%d-%d", i, k), brokerPurpose(1500+100*k, i)), sim: sim, consumer: c, client: 1 + k}
					acts = append(acts, f.fetchMany)
				}
			}
			i++
		}
	}
	if sim.rotation != nil {
		acts = append(acts, sim.rotation.rotateToken)
	}
	for i := range sim.rng.IntN(3) {
		o := &brokerOperator{baseClient: sim.newClient(fmt.Sprint("operator-", i), brokerPurpose(1800, i)), sim: sim}
		acts = append(acts, o.retriggerMany)
	}
	return acts
}

// runBroker runs the broker simulation of a seed in a synctest bubble.
func runBroker(o *Options) (r Result) {
	sim, err := newBrokerSimulation(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = sim.runToEnd(); err != nil {
		err = fmt.Errorf("broker: %w", err)
	}
	return sim.newResult(err)
}

// adminCredentials are the credentials of operators.
var adminCredentials = &broker.Credentials{IsAdmin: true}
