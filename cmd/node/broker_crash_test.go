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

// A brokerWorld is an account with a channel whose consumer fails at first, and works once its job
// is dead. One node after the other does what managers, the producer and the consumer ask for.
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

// leads has a new node do everything that was not done. It makes no call again unless retries is
// 0.
func (w *brokerWorld) leads(retries int) error {
	documents := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{Retries: retries})
	consumers := &callees{policy: domain.BrokerPolicy(time.Second, 1)}
	producer, channel, consumer := brokerParties(w.T)
	engine := delivery.New(delivery.Ports{Streams: documents, Cursors: documents, Shards: documents, Receivers: consumers, Caller: w}, delivery.Options{
		Owns: func(shard int) bool { return shard == repository.ShardOf(consumer.Cursor()) }, // the others are empty
	})
	b := broker.New(broker.Ports{Parties: documents, Streams: documents, Cursors: documents, Shards: documents, Content: w.account.Content}, w.keys, broker.Options{
		Created: engine.Created, Changed: engine.Changed, Published: engine.Published, LookAt: engine.LookAt,
	})
	consumers.broker = b
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	defer running.Wait()
	defer cancel()
	wait := func() {
		<-time.After(2 * time.Minute) // of the clock of the bubble
		synctest.Wait()
	}

	operator := &broker.Credentials{IsAdmin: true}
	for _, p := range []struct {
		id    domain.PartyID
		draft broker.Draft
	}{
		{producer, broker.Draft{Token: ptr("p")}}, {channel, broker.Draft{Token: ptr("c")}},
		{consumer, broker.Draft{Token: ptr("k"), CallbackURL: "https://example.org/"}},
	} {
		if _, _, err := b.Put(ctx, operator, p.id, p.draft, broker.Condition{}); err != nil {
			return err
		}
	}
	creds := &broker.Credentials{ChannelToken: "c", ProducerID: producer.String(), ProducerToken: "p", ConsumerToken: "k"}
	message, _, err := b.Broadcast(ctx, creds, channel, &broker.Broadcast{ID: "one", Payload: []byte("x")})
	if err != nil {
		return err
	}
	wait()
	m, err := b.Message(ctx, operator, channel, message)
	if err != nil {
		return err
	}
	if m.Jobs[0].Status == broker.Delivered {
		return nil
	}
	w.isHealthy.Store(true)
	if m.Jobs[0].Status == broker.Dead {
		if err := b.RetriggerJob(ctx, creds, consumer, message); err != nil {
			return err
		}
	}
	wait()
	return nil
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

// A node ends at each request of the PUTs, the broadcast, the calls and the re-trigger, and another
// one continues: the message is there once and is delivered.
func TestABroker_SurvivesACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					if crashed := brokerCrashes(t, n, last); !crashed {
						require.Greater(t, n, 20)
						return
					}
				}
			})
		})
	}
}

// brokerCrashes ends a node at its n-th request, and reports whether there was one.
func brokerCrashes(t *testing.T, n int, last faulty.Fault) (crashed bool) {
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	w := &brokerWorld{T: t, keys: keys, account: accounttest.New(t, embedded.Options{}, pushstore.Containers())}
	w.account.Line.CrashAt(n, last)
	_ = w.leads(-1)
	crashed = w.account.Line.Fired() > 0
	w.account.Line.Break(nil)
	require.NoError(t, w.leads(0), "crash at request %d", n)

	documents := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{})
	_, channel, consumer := brokerParties(t)
	found, err := documents.Read(t.Context(), channel.Stream(), domain.Position{}, 100)
	require.NoError(t, err)
	require.Len(t, found.Entries, 1, "crash at request %d", n)
	standing, err := documents.Standing(t.Context(), consumer.Cursor())
	require.NoError(t, err)
	c := standing.Counters
	require.EqualValues(t, 1, c.Delivered, "crash at request %d: %+v", n, c)
	require.Equal(t, c.Triggered, c.Delivered+c.Errored, "crash at request %d", n)
	require.Zero(t, standing.Outstanding())
	return crashed
}
