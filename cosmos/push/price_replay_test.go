package push

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/domain/replay"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A replayBill measures the request units of replays by the delivery engine, from the request to the last
// stored result.
type replayBill struct {
	*deliverytest.World
	rig      *rig
	node     *deliverytest.Node
	receiver *deliverytest.Receiver
	service  *replay.Service
	owner    domain.ActorID
	id       domain.SubscriptionID
	succeeds atomic.Bool
}

// newReplayBill prepares a subscription with n dead letters and n delivered messages.
func newReplayBill(t *testing.T, n int, isOrdered bool) *replayBill {
	b := &replayBill{owner: repositorytest.NewActor()}
	b.World = deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
		b.rig = newRig(t, embedded.Options{Pessimistic: true, Clock: clock.Now})
		return b.rig.stores(b.rig.node(Options{Clock: clock.Now}))
	})
	d := repositorytest.NewDefinition(b.owner)
	d.Filter, d.Created, d.Topic = "", time.Unix(0, 0), b.Stream.String()[len("topic|"):]
	b.id = d.ID
	_, _, err := b.Stores.Definitions.CreateSubscription(t.Context(), d)
	require.NoError(t, err)
	b.receiver = b.Add(&deliverytest.Receiver{
		ID: b.id.Cursor(), Policy: domain.QueuePolicy([]time.Duration{0, time.Second}, 2), Concurrency: domain.MaxConcurrency, IsOrdered: isOrdered,
		Answer: func(_ context.Context, c delivery.Call) domain.Answer {
			<-time.After(20 * time.Millisecond)
			if c.Entry.Position.Number%2 == 0 && !b.succeeds.Load() {
				return domain.Answer{Status: 500}
			}
			return domain.Answer{Status: 200}
		},
	})
	b.node = b.Start(delivery.Options{CheckInterval: time.Hour, Idle: time.Hour})
	b.node.AnswerSettlementsAfter(5 * time.Millisecond) // with this delay, several results share a settlement, as on a real account
	b.service = replay.New(replay.Ports{
		Definitions: b.Stores.Definitions, Streams: b.Stores.Streams, Cursors: b.Stores.Cursors, Shards: b.Stores.Shards,
	}, replay.Options{Changed: b.node.Changed})
	synctest.Wait()
	b.Publish(b.node, 2*n)
	<-time.After(10 * time.Minute)
	require.Len(t, b.DeadLetters(b.receiver), n)
	b.succeeds.Store(true)
	return b
}

// countUnits returns the request units of a replay of n deliveries, divided by n. It also logs the number
// of requests.
func (b *replayBill) countUnits(n int, request func() error) float64 {
	b.Helper()
	calls, units, requests := len(b.receiver.Calls()), b.rig.engine.RequestUnits(), b.rig.engine.Requests()
	require.NoError(b, request())
	<-time.After(time.Minute)
	require.Len(b, b.receiver.Calls(), calls+n)
	price := (b.rig.engine.RequestUnits() - units) / float64(n)
	b.Logf("%.2f RU and %.2f requests for each delivery", price, float64(b.rig.engine.Requests()-requests)/float64(n))
	return price
}

func TestAReplay_CostsUpToItsLimit(t *testing.T) {
	anyTime := domain.ReplayRange{From: time.Unix(0, 0), To: time.Now().AddDate(100, 0, 0), Rate: domain.MaxReplayRate}
	dead := anyTime
	dead.OnlyDead = true
	start := func(r domain.ReplayRange) func(*replayBill) error {
		return func(b *replayBill) error {
			_, err := b.service.Start(b.Context(), b.owner, b.id, r)
			return err
		}
	}
	one := func(number int64) func(*replayBill) error {
		return func(b *replayBill) error {
			return b.service.ReplayOne(b.Context(), b.owner, domain.DeliveryID{Subscription: b.id, Entry: domain.EntryID{Number: number}})
		}
	}
	for _, tc := range []struct {
		name      string
		dead      int
		isOrdered bool
		replayed  int
		request   func(*replayBill) error
		limitRU   float64 // limit for the request units per delivery
	}{
		{"a dead letter", 8, false, 1, one(0), 66},
		{"a delivery that succeeded", 8, false, 1, one(1), 63},
		{"50 dead letters", 50, false, 50, start(dead), 19.5},
		{"50 deliveries, half of them dead letters", 25, false, 50, start(anyTime), 10.5},
		{"50 deliveries in order", 25, true, 50, start(anyTime), 37},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newReplayBill(t, tc.dead, tc.isOrdered)
				defer b.node.Stop()
				price := b.countUnits(tc.replayed, func() error { return tc.request(b) })
				require.LessOrEqual(t, price, tc.limitRU)
			})
		})
	}
}
