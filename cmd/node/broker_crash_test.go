package node

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// A brokerWorld is an account whose channel has one consumer. The consumer
// fails until its job is a dead letter, and then succeeds. A sequence of nodes
// serves the requests.
type brokerWorld struct {
	*testing.T
	account   *accounttest.Account
	keys      *subscribe.Keyring
	isHealthy atomic.Bool
	calls     atomic.Int64
}

// Call implements [delivery.Caller].
func (w *brokerWorld) Call(context.Context, delivery.Call) domain.Answer {
	w.calls.Add(1)
	if w.isHealthy.Load() {
		return domain.Answer{Status: 204}
	}
	return domain.Answer{Status: 500}
}

func ptr(s string) *string { return &s }

// A crashNode is a node of a brokerWorld.
type crashNode struct {
	*broker.Service
	stop func()
}

// start starts a node. retries is the number of retries that all of its store
// requests share: 0 selects the default, a negative number none.
func (w *brokerWorld) start(retries int, policy domain.Policy) *crashNode {
	documents := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{Retries: retries})
	consumers := &callees{policy: policy}
	_, _, consumer := brokerParties(w.T)
	engine := delivery.New(delivery.Ports{Streams: documents, Cursors: documents, Shards: documents, Receivers: consumers, Caller: w}, delivery.Options{
		Owns: func(shard int) bool { return shard == repository.ShardOf(consumer.Cursor()) }, // the node serves the only shard that contains a cursor
	})
	b := broker.New(broker.Ports{Parties: documents, Streams: documents, Cursors: documents, Shards: documents, Content: w.account.Content}, w.keys, broker.Options{
		Created: engine.Created, Changed: engine.Changed, Published: engine.Published, CheckStream: engine.CheckStream, IsCalling: engine.IsCalling, Settled: engine.Settled,
	})
	consumers.broker = b
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	return &crashNode{b, func() { cancel(); running.Wait() }}
}

// sleep advances the fake clock of the synctest bubble.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var crashOperator = &broker.Credentials{IsAdmin: true}

// putAll creates the producer, the channel and the consumer. It sends each PUT
// twice.
func (n *crashNode) putAll(t *testing.T) error {
	t.Helper()
	producer, channel, consumer := brokerParties(t)
	for _, p := range []struct {
		id    domain.PartyID
		draft broker.Draft
	}{
		{producer, broker.Draft{Token: ptr("p")}},
		{channel, broker.Draft{Token: ptr("c")}},
		{consumer, broker.Draft{Token: ptr("k"), CallbackURL: "https://example.org/"}},
	} {
		for range 2 {
			if _, _, err := n.PutParty(t.Context(), crashOperator, p.id, p.draft, broker.Condition{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// A retriggerFunc re-triggers the dead letter of a message.
type retriggerFunc func(t *testing.T, n *crashNode, message string) error

// finishWork starts a new node, which completes all remaining work. retries is
// the number of retries that all of its store requests share: 0 selects the
// default, a negative number none.
func (w *brokerWorld) finishWork(retries int, retrigger retriggerFunc) error {
	n := w.start(retries, domain.BrokerPolicy(time.Second, 1))
	defer n.stop()
	if err := n.putAll(w.T); err != nil {
		return err
	}
	_, channel, _ := brokerParties(w.T)
	message, _, err := n.Broadcast(w.Context(), crashCredentials(w.T), channel, &broker.Broadcast{ID: "one", Payload: []byte("x")})
	if err != nil {
		return err
	}
	sleep(2 * time.Minute)
	m, err := n.Message(w.Context(), crashOperator, channel, message, nil)
	if err != nil {
		return err
	}
	if m.Jobs[0].Status == broker.Delivered {
		return nil
	}
	w.isHealthy.Store(true)
	if m.Jobs[0].Status == broker.Dead {
		if err := retrigger(w.T, n, message); err != nil {
			return err
		}
	}
	sleep(2 * time.Minute)
	return nil
}

func crashCredentials(t *testing.T) *broker.Credentials {
	t.Helper()
	producer, _, _ := brokerParties(t)
	return &broker.Credentials{ChannelToken: "c", ProducerID: producer.String(), ProducerToken: "p", ConsumerToken: "k"}
}

func brokerParties(t *testing.T) (producer, channel, consumer domain.PartyID) {
	t.Helper()
	var err error
	producer, err = domain.Producers.Parse("maker")
	require.NoError(t, err)
	channel, err = domain.Channels.Parse("prices")
	require.NoError(t, err)
	consumer, err = channel.Consumers().Parse("shop")
	require.NoError(t, err)
	return producer, channel, consumer
}

// A node crashes at each of its store requests in turn: during the PUTs, the
// broadcast, the calls and the re-trigger. Then another node continues. The
// message must exist once and be delivered.
func TestABroker_SurvivesACrashAtEachRequest(t *testing.T) {
	for what, retrigger := range map[string]retriggerFunc{
		"job": func(t *testing.T, n *crashNode, message string) error {
			_, _, consumer := brokerParties(t)
			return n.RetriggerJob(t.Context(), crashCredentials(t), consumer, message)
		},
		"message": func(t *testing.T, n *crashNode, message string) error {
			_, channel, _ := brokerParties(t)
			return n.RetriggerMessage(t.Context(), crashOperator, channel, message)
		},
	} {
		crashAtEachRequest(t, what, func(t *testing.T, n int, last faulty.Fault) bool {
			return crashBroker(t, n, last, retrigger)
		})
	}
}

// crashAtEachRequest calls test with a crash at the n-th request for n = 1, 2,
// …, until a run needs fewer than n requests. It tests two kinds of faults.
func crashAtEachRequest(t *testing.T, name string, test func(t *testing.T, n int, last faulty.Fault) (crashed bool)) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(name+"/"+last.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					if crashed := test(t, n, last); !crashed {
						require.Greater(t, n, 20)
						return
					}
				}
			})
		})
	}
}

func newBrokerWorld(t *testing.T) *brokerWorld {
	t.Helper()
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	return &brokerWorld{T: t, keys: keys, account: accounttest.New(t, embedded.Options{}, pushstore.Containers())}
}

// crashBroker runs the broker with a crash at the n-th store request. It
// returns false if the run needed fewer requests.
func crashBroker(t *testing.T, n int, last faulty.Fault, retrigger retriggerFunc) (crashed bool) {
	w := newBrokerWorld(t)
	w.account.Transport.CrashAt(n, last)
	_ = w.finishWork(-1, retrigger)
	crashed = w.account.Transport.Fired() > 0
	w.account.Transport.Break(nil)
	require.NoError(t, w.finishWork(0, retrigger), "crash at request %d", n)
	w.requireDelivered(1, "crash at request %d", n)
	return crashed
}

// requireDelivered checks that the channel contains this number of messages,
// and that all of them are delivered.
func (w *brokerWorld) requireDelivered(messages int, args ...any) domain.Standing {
	w.Helper()
	documents := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{})
	_, channel, consumer := brokerParties(w.T)
	end, err := documents.End(w.Context(), channel.Stream())
	require.NoError(w, err)
	sent := int64(0)
	for _, p := range end.Positions {
		sent += p.Number
	}
	require.EqualValues(w, messages, sent, args...)
	standing, err := documents.Standing(w.Context(), consumer.Cursor())
	require.NoError(w, err)
	c := standing.Counters
	require.EqualValues(w, messages, c.Delivered, args...)
	require.Equal(w, c.Triggered, c.Delivered+c.Errored, args...)
	require.Zero(w, standing.Outstanding(), args...)
	return standing
}

// A node crashes at each of its store requests during a Peek and a Dequeue.
// Then another node continues. The consumer's bundle must not change until it
// is dequeued. The consumer must not be called with its messages, and no
// message may remain.
func TestFetchingConsumer_SurvivesACrashAtEachRequest(t *testing.T) {
	crashAtEachRequest(t, "peek and dequeue", func(t *testing.T, n int, last faulty.Fault) (crashed bool) {
		w := newBrokerWorld(t)
		c := &crashFetcher{brokerWorld: w}
		node := w.start(0, crashFetcherPolicy)
		require.NoError(t, c.sendAll(node))
		w.account.Transport.CrashAt(n, last)
		_ = c.fetch(node)
		crashed = w.account.Transport.Fired() > 0
		node.stop()
		w.account.Transport.Break(nil)

		node = w.start(0, crashFetcherPolicy)
		defer node.stop()
		sleep(20 * time.Second)
		calls := w.calls.Load()
		require.NoError(t, c.fetch(node), "crash at request %d", n)
		w.isHealthy.Store(true)
		sleep(time.Hour)
		if c.bundle != nil {
			require.Equal(t, calls, w.calls.Load(), "crash at request %d: the consumer is called with what it has fetched", n)
		}
		s := w.requireDelivered(3, "crash at request %d", n)
		require.Len(t, s.Dequeued, 1, "crash at request %d", n)
		return crashed
	})
}

// crashFetcherPolicy retries a failed message only after an hour.
var crashFetcherPolicy = domain.BrokerPolicy(time.Hour, 5)

// A crashFetcher is a consumer that fetches its messages after the hub's calls
// to deliver them have failed.
type crashFetcher struct {
	*brokerWorld
	bundle   *broker.Bundle // bundle that the consumer received
	dequeued bool           // a Dequeue has succeeded
}

// sendAll sends three messages with two priorities, and waits until all of
// their calls have failed.
func (c *crashFetcher) sendAll(n *crashNode) error {
	if err := n.putAll(c.T); err != nil {
		return err
	}
	_, channel, _ := brokerParties(c.T)
	for _, priority := range []int{0, 7, 0} {
		if _, _, err := n.Broadcast(c.Context(), crashCredentials(c.T), channel, &broker.Broadcast{Priority: priority, Payload: []byte("x")}); err != nil {
			return err
		}
	}
	sleep(time.Minute)
	return nil
}

// fetch peeks twice and dequeues twice. It does not dequeue a bundle that is
// already dequeued.
func (c *crashFetcher) fetch(n *crashNode) error {
	_, _, consumer := brokerParties(c.T)
	creds := crashCredentials(c.T)
	for range 2 {
		bundle, err := n.Peek(c.Context(), creds, consumer, broker.MaxPeek, nil)
		switch {
		case err != nil:
			return err
		case bundle == nil: // already dequeued: the response of an earlier Dequeue was lost
			require.True(c, c.dequeued || c.bundle != nil, "there was a bundle")
		case c.bundle == nil:
			require.Len(c, bundle.Messages, 3)
			c.bundle = bundle
		default:
			require.Equal(c, c.bundle, bundle)
			require.False(c, c.dequeued)
		}
	}
	for range 2 {
		if err := n.Dequeue(c.Context(), creds, consumer, c.bundle.ID); err != nil {
			return err
		}
		c.dequeued = true
	}
	return nil
}
