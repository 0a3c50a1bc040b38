package simulate

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// A brokerWorld is a push world of channels: producers send messages to them, and consumers are
// called with the messages or fetch them. Some seeds have one besides their other worlds.
type brokerWorld struct {
	*pushWorld
	keys      *subscribe.Keyring
	producers []domain.PartyID
	channels  []*brokerChannel
	rotation  *tokenRotation // nil: no token is replaced
	ticks     atomic.Int64   // time of the histories of consumers

	// Guarded by pushWorld.pmu.
	sent     map[string]*sentMessage // by payload
	payloads map[push.Entry]string   // that consumers or readers have seen
	created  map[domain.PartyID]bool // by a PUT that was answered
}

// A brokerChannel is a channel and what is known of it.
type brokerChannel struct {
	id        domain.PartyID
	consumers []*brokerConsumer
	// configured is the number of the first consumers that are put before any message is sent. The
	// others are put later.
	configured int
}

const (
	// brokerFaults is the number before the first fault of a broker world.
	brokerFaults = 2_000_000
	// brokerUses is added to the use of each dice.
	brokerUses = 10_000
)

// hasBroker reports whether a seed has a broker world.
func hasBroker(seed uint64) bool { return newDice(seed, brokerUses+500).n(3) == 0 }

func newBrokerWorld(o *Options) (*brokerWorld, error) {
	p, err := newPushWorld(o, brokerUses, brokerFaults)
	if err != nil {
		return nil, err
	}
	w := &brokerWorld{pushWorld: p, sent: make(map[string]*sentMessage), payloads: make(map[push.Entry]string), created: make(map[domain.PartyID]bool)}
	p.broker, p.course, p.attempts = w, w.broadcastAll, 1+brokerRetries
	p.weather.lasts = 300 + p.d.n(1500)
	if p.failSafe.hasOff() && p.failSafe.recovery == byAsking && p.failSafe.d.n(2) == 0 {
		p.failSafe.recovery, p.failSafe.isOff = byWorker, [pushNodes]bool{true, true}
	}
	w.keys, err = subscribe.NewKeyring(subscribe.NewKey())
	for i := range 1 + p.d.n(2) {
		producer, failure := domain.Producers.Parse(fmt.Sprint("producer-", i))
		err = errors.Join(err, failure)
		w.producers = append(w.producers, producer)
	}
	for i := range 1 + p.d.n(2) {
		channel, failure := domain.Channels.Parse(fmt.Sprint("channel-", i))
		c := &brokerChannel{id: channel}
		w.channels = append(w.channels, c)
		err = errors.Join(err, failure)
		for range 1 + min(p.d.n(5), p.d.n(5)) {
			err = errors.Join(err, w.addConsumer(c))
		}
		c.configured = min(p.d.n(len(c.consumers)+1), len(c.consumers))
	}
	if p.d.n(3) == 0 {
		var failure error
		w.rotation, failure = w.newTokenRotation()
		err = errors.Join(err, failure)
	}
	return w, err
}

// broadcastAll lets all parties act: parties are put, messages are broadcast, and then every
// delivery must end.
func (w *brokerWorld) broadcastAll() error {
	owner := w.newParty("owner", brokerUses+510)
	if err := w.runTogether(w.syncs()...); err != nil || w.ctx.Err() != nil {
		return err
	}
	if err := w.runTogether(w.acts()...); err != nil || w.ctx.Err() != nil {
		return err
	}
	if err := w.ends(&owner, func() error { return w.dequeueOpenIfCalm(owner) }); err != nil || w.ctx.Err() != nil {
		return err
	}
	return errors.Join(w.judge(), w.judgeMessages(&owner), w.judgeHistories())
}

// diceUse returns the use of the dice of the i-th party of a kind.
func diceUse(kind, i int) uint64 { return uint64(brokerUses + kind + i) } //nolint:gosec // positive

// syncs returns those of some nodes, which put the same parties.
func (w *brokerWorld) syncs() (acts []func() error) {
	for i := range 1 + w.d.n(3) {
		m := &brokerManager{party: w.newParty(fmt.Sprint("sync-", i), diceUse(1000, i)), w: w}
		acts = append(acts, m.putAll)
	}
	return acts
}

// acts returns what parties do at the same time.
func (w *brokerWorld) acts() (acts []func() error) {
	for i := range 1 + w.d.n(3) {
		p := &brokerProducer{party: w.newParty(fmt.Sprint("sender-", i), diceUse(1100, i)), w: w}
		acts = append(acts, p.broadcastMany)
	}
	if w.failSafe.hasOff() {
		p := &brokerProducer{party: w.newParty("sender-late", diceUse(1100, 50)), w: w}
		acts = append(acts, p.broadcastLate)
	}
	i := 0
	for _, channel := range w.channels {
		for j, c := range channel.consumers {
			managers := w.d.n(2) // of what is there
			if j >= channel.configured {
				managers = 1 + w.d.n(2) // who may meet
			}
			for k := range managers {
				m := &brokerManager{party: w.newParty(fmt.Sprintf("manager-%d-%d", i, k), diceUse(1200+100*k, i)), w: w}
				acts = append(acts, func() error { return m.putLate(c) })
			}
			if w.d.n(2) == 0 {
				for k := range 1 + w.d.n(2) {
					f := &brokerFetcher{party: w.newParty(fmt.Sprintf("fetcher-%d-%d", i, k), diceUse(1500+100*k, i)), w: w, c: c, client: 1 + k}
					acts = append(acts, f.fetchMany)
				}
			}
			i++
		}
	}
	if w.rotation != nil {
		acts = append(acts, w.rotation.rotate)
	}
	for i := range w.d.n(3) {
		o := &brokerOperator{party: w.newParty(fmt.Sprint("operator-", i), diceUse(1800, i)), w: w}
		acts = append(acts, o.retriggerMany)
	}
	return acts
}

// simulateBroker lets the broker world of a seed run, in a bubble.
func simulateBroker(o *Options) (r Result) {
	w, err := newBrokerWorld(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = w.simulate(); err != nil {
		err = fmt.Errorf("broker: %w", err)
	}
	return w.result(err)
}

// adminCredentials are those of operators.
var adminCredentials = &broker.Credentials{IsAdmin: true}
