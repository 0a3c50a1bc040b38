package simulate

import (
	"errors"
	"fmt"
	"sync"

	"github.com/messagehub/messagehub/bench/simulate/truth/push"
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

	// Guarded by pushWorld.pmu.
	sent     map[string]*sentMessage // by payload
	payloads map[push.Entry]string   // that consumers or readers have seen
}

// A brokerChannel is a channel and what is known of it.
type brokerChannel struct {
	id        domain.PartyID
	consumers []*brokerConsumer
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
	w := &brokerWorld{pushWorld: p, sent: make(map[string]*sentMessage), payloads: make(map[push.Entry]string)}
	p.broker, p.course = w, w.broadcastAll
	w.keys, err = subscribe.NewKeyring(subscribe.NewKey())
	for i := range 1 + p.d.n(2) {
		var producer domain.PartyID
		producer, failure := domain.Producers.Parse(fmt.Sprint("producer-", i))
		err = errors.Join(err, failure)
		w.producers = append(w.producers, producer)
	}
	channel, failure := domain.Channels.Parse("channel-0")
	c := &brokerChannel{id: channel}
	w.channels = append(w.channels, c)
	return w, errors.Join(err, failure, w.addConsumer(c))
}

// broadcastAll lets all parties act: parties are put, messages are broadcast, and then everything
// has to come to its end.
func (w *brokerWorld) broadcastAll() error {
	owner := &brokerManager{party: w.newParty("owner", brokerUses+510), w: w}
	if err := owner.putAll(); err != nil || w.ctx.Err() != nil {
		return err
	}
	var acts []func() error
	for i := range 1 + w.d.n(3) {
		p := &brokerProducer{party: w.newParty(fmt.Sprint("sender-", i), uint64(brokerUses+520+i)), w: w} //nolint:gosec // positive
		acts = append(acts, p.broadcasts)
	}
	if err := w.together(acts...); err != nil {
		return err
	}
	if err := w.ends(&owner.party, func() error { return nil }); err != nil || w.ctx.Err() != nil {
		return err
	}
	return errors.Join(w.judge(), w.judgeMessages(&owner.party))
}

// together runs functions at the same time, and returns their errors.
func (w *brokerWorld) together(acts ...func() error) error {
	var all sync.WaitGroup
	failures := make([]error, len(acts))
	for i, act := range acts {
		w.ghosts.Add(1)
		all.Go(func() { defer w.ghosts.Done(); failures[i] = act() })
	}
	all.Wait()
	return errors.Join(failures...)
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
