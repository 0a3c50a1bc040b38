package receiverlist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/receiverlist"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A fixture contains a Service that lists receivers, and its stores, which are in memory.
type fixture struct {
	*testing.T
	now           time.Time
	list          *receiverlist.Service
	ports         receiverlist.Ports
	subscriptions *subscribe.Service
}

func newFixture(t *testing.T, change ...func(*receiverlist.Ports)) *fixture {
	t.Helper()
	f := &fixture{T: t, now: time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return f.now }
	cursors := memory.NewCursors(clock)
	f.ports = receiverlist.Ports{
		Definitions: memory.NewDefinitions(), Cursors: cursors, Shards: cursors, Streams: memory.NewStreams(repository.MessageRetention, clock), Parties: memory.NewParties(),
	}
	f.subscriptions = subscribe.New(subscribe.Ports{Definitions: f.ports.Definitions, Streams: f.ports.Streams, Cursors: cursors, Dequeues: memory.New(memory.Options{})}, nil, subscribe.Options{Clock: clock})
	for _, c := range change {
		c(&f.ports)
	}
	f.list = receiverlist.New(f.ports, clock)
	return f
}

func (f *fixture) addSubscription(owner, topic string) domain.SubscriptionID {
	f.Helper()
	actor, err := domain.ParseActorID(owner)
	require.NoError(f, err)
	s, err := f.subscriptions.Create(f.Context(), subscribe.Draft{Subscription: domain.Subscription{Owner: actor, Topic: topic, CallbackURL: "https://receiver.example.org/hook?key=secret"}})
	require.NoError(f, err)
	return s.ID
}

func (f *fixture) publishTo(stream domain.StreamName, priorities ...int) {
	f.Helper()
	for _, p := range priorities {
		_, err := f.ports.Streams.Append(f.Context(), stream, []domain.Message{{Priority: p, Payload: []byte("x")}})
		require.NoError(f, err)
		f.now = f.now.Add(time.Minute)
	}
}

// listAll returns the receivers of all pages.
func (f *fixture) listAll(q receiverlist.Query) (all []receiverlist.Receiver) {
	f.Helper()
	for range 100 {
		page, err := f.list.List(f.Context(), q)
		require.NoError(f, err)
		require.LessOrEqual(f, len(page.Receivers), receiverlist.MaxPage)
		all = append(all, page.Receivers...)
		if q.After = page.Next; q.After == "" {
			return all
		}
	}
	f.Error("the list does not end")
	return nil
}

func TestList_HasEachSubscriptionOnce(t *testing.T) {
	f := newFixture(t)
	wanted := make(map[domain.SubscriptionID]bool)
	for i := range 1000 {
		wanted[f.addSubscription(fmt.Sprint("owner", i), "orders")] = true
	}
	for _, r := range f.listAll(receiverlist.Query{Kind: receiverlist.Subscription}) {
		require.True(t, wanted[r.Subscription], "it is listed twice")
		delete(wanted, r.Subscription)
	}
	require.Empty(t, wanted)
	require.Empty(t, f.listAll(receiverlist.Query{Kind: receiverlist.Subscription, State: receiverlist.Stopped}), "each part may be empty")
	require.Empty(t, f.listAll(receiverlist.Query{Kind: receiverlist.Consumer}))
}

func TestList_CountsMessagesAfterTheCursor(t *testing.T) {
	f := newFixture(t)
	began := f.now
	f.addSubscription("owner", "orders")
	topic, err := domain.ParseTopic("orders")
	require.NoError(t, err)
	f.publishTo(topic, 5, 0, 0)
	r := f.listAll(receiverlist.Query{Kind: receiverlist.Subscription})[0]
	require.Equal(t, int64(3), r.Behind)
	require.Equal(t, began, r.Oldest)
	require.Equal(t, "receiver.example.org", r.Host)
	require.Equal(t, topic, r.Stream)
	require.Empty(t, r.Fault)
}

func TestList_LeavesOutSubscriptionsThatWereDeleted(t *testing.T) {
	f := newFixture(t)
	id := f.addSubscription("owner", "orders")
	owner, err := domain.ParseActorID("owner")
	require.NoError(t, err)
	_, err = f.subscriptions.Delete(t.Context(), owner, id, subscribe.Match{})
	require.NoError(t, err)
	require.Empty(t, f.listAll(receiverlist.Query{Kind: receiverlist.Subscription}))
	_, err = f.list.Subscription(t.Context(), owner, id)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}

// brokenDefinitions fails to read one subscription.
type brokenDefinitions struct {
	repository.Definitions
	broken *domain.SubscriptionID
}

func (d brokenDefinitions) Subscription(ctx context.Context, id domain.SubscriptionID) (*repository.Definition, error) {
	if id == *d.broken {
		return nil, domain.Errorf(domain.Damaged, "it cannot be read")
	}
	return d.Definitions.Subscription(ctx, id)
}

func TestList_ReportsAReceiverThatCannotBeRead(t *testing.T) {
	var broken domain.SubscriptionID
	f := newFixture(t, func(p *receiverlist.Ports) { p.Definitions = brokenDefinitions{p.Definitions, &broken} })
	broken = f.addSubscription("owner", "orders")
	f.addSubscription("owner", "orders")
	for _, state := range []string{"", receiverlist.Stopped} {
		faults := 0
		for _, r := range f.listAll(receiverlist.Query{Kind: receiverlist.Subscription, State: state}) {
			if r.Fault != "" {
				require.Equal(t, broken, r.Subscription)
				faults++
			}
		}
		require.Equal(t, 1, faults, state)
	}
}

// brokenShards fails to read some shards.
type brokenShards struct {
	repository.Shards
	err error
}

func (s brokenShards) Cursors(ctx context.Context, shard int) ([]repository.ShardEntry, []repository.WatchedStream, error) {
	entries, watched, err := s.Shards.Cursors(ctx, shard)
	if err == nil && shard == 3 {
		err = s.err
	}
	return entries, watched, err
}

func TestList_FailsOnlyIfAShardCannotBeRead(t *testing.T) {
	for _, kind := range []domain.Kind{domain.Damaged, domain.NewerFormat, domain.Unavailable} {
		f := newFixture(t, func(p *receiverlist.Ports) { p.Shards = brokenShards{p.Shards, domain.Errorf(kind, "a fault")} })
		f.addSubscription("owner", "orders")
		page, err := f.list.List(t.Context(), receiverlist.Query{Kind: receiverlist.Subscription})
		if kind == domain.Unavailable {
			require.Equal(t, kind, domain.KindOf(err))
			continue
		}
		require.NoError(t, err)
		require.Len(t, page.Receivers, 1)
	}
}

func TestList_RefusesUnknownStatesAndPositions(t *testing.T) {
	f := newFixture(t)
	for _, q := range []receiverlist.Query{{State: "x"}, {After: "x"}, {After: "OTkgeA"}, {After: "LTEgeA"}, {After: "MQ"}} {
		_, err := f.list.List(t.Context(), q)
		require.Equal(t, domain.Invalid, domain.KindOf(err), q)
	}
}
