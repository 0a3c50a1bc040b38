package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/replay"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A crashWorld is an account with subscriptions. Until isHealthy is set,
// receivers fail for one of the events.
type crashWorld struct {
	*testing.T
	account   *accounttest.Account
	stream    domain.StreamName
	owner     domain.ActorID
	isHealthy atomic.Bool

	mu    sync.Mutex
	calls map[domain.CursorID]map[int64]int // number of calls by cursor and entry number
}

const (
	crashEvents      = 6
	crashConcurrency = 2
	crashFailing     = 3 // number of the event for which receivers fail
)

func newCrashWorld(t *testing.T) *crashWorld {
	stream, err := domain.ParseTopic(domain.DefaultTopic)
	require.NoError(t, err)
	return &crashWorld{
		T: t, stream: stream, owner: repositorytest.NewActor(), calls: make(map[domain.CursorID]map[int64]int),
		account: accounttest.New(t, embedded.Options{}, pushstore.Containers()),
	}
}

// Call implements [delivery.Caller].
func (w *crashWorld) Call(ctx context.Context, c delivery.Call) domain.Answer {
	number := c.Entry.Position.Number
	w.mu.Lock()
	if w.calls[c.Cursor] == nil {
		w.calls[c.Cursor] = make(map[int64]int)
	}
	w.calls[c.Cursor][number]++
	w.mu.Unlock()
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return domain.Answer{Error: "the call was ended"}
	}
	if number == crashFailing && !w.isHealthy.Load() {
		return domain.Answer{Status: 500}
	}
	return domain.Answer{Status: 204}
}

// callsOf returns how often the receiver of a cursor was called.
func (w *crashWorld) callsOf(id domain.CursorID) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, calls := range w.calls[id] {
		n += calls
	}
	return n
}

// A subscriptionNode is a node of a crashWorld.
type subscriptionNode struct {
	documents     *pushstore.Store
	engine        *delivery.Engine
	subscriptions *subscribe.Service
	events        *publish.Service
	replays       *replay.Service
	stop          func() // stops the node and waits for its end
}

// startNode starts a node. retries is the number of retries that all of its
// store requests share: 0 selects the default, a negative number none. Each
// segment of its streams contains only a few events.
func (w *crashWorld) startNode(line *faulty.Transport, retries int, isShared bool, o delivery.Options) *subscriptionNode {
	documents := pushstore.New(w.account.ConnectBy(line), w.account.Content, pushstore.Options{Retries: retries, SegmentBytes: 200})
	cfg := config.Default()
	cfg.Push.Delays, cfg.Push.Concurrency = []time.Duration{0, time.Second}, crashConcurrency
	ports := delivery.Ports{
		Streams: documents, Cursors: documents, Shards: documents, Caller: w,
		Receivers: newReceivers(&cfg, documents, &subscribe.Dequeues{Definitions: documents}, nil, time.Now, prometheus.NewRegistry()),
	}
	if isShared {
		ports.Nodes = documents
	}
	n := &subscriptionNode{documents: documents, engine: delivery.New(ports, o)}
	n.subscriptions = subscribe.New(subscribe.Ports{
		Definitions: documents, Streams: documents, Cursors: documents, Dequeues: memory.New(memory.Options{}),
	}, nil, subscribe.Options{Created: n.engine.Created, Changed: n.engine.Changed})
	n.events = publish.New(documents, n.engine.Published)
	ids := []string{"one", "range"} // fixed ids, so that a repeated request does not start a second replay
	n.replays = replay.New(replay.Ports{Definitions: documents, Streams: documents, Cursors: documents, Shards: documents}, replay.Options{
		Changed: n.engine.Changed,
		NewID: func() string {
			s, err := documents.Standing(context.Background(), w.subscription(0).Cursor())
			if err != nil || s.Followed == 0 {
				return ids[0]
			}
			return ids[1]
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = n.engine.Run(ctx) })
	n.stop = func() {
		cancel()
		running.Wait()
	}
	return n
}

// subscription returns the id of the i-th subscription.
func (w *crashWorld) subscription(i int) domain.SubscriptionID {
	id, err := domain.ParseSubscriptionID(fmt.Sprintf("0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c%02d", i))
	require.NoError(w, err)
	return id
}

// putSubscription stores a subscription to all events.
func (w *crashWorld) putSubscription(n *subscriptionNode, i int) error {
	_, _, err := n.subscriptions.Put(context.Background(), w.subscription(i), subscribe.Draft{
		Subscription: domain.Subscription{Owner: w.owner, CallbackURL: "https://example.org/"},
	}, subscribe.Match{})
	return err
}

// publishAll publishes crashEvents events, two per request.
func (w *crashWorld) publishAll(n *subscriptionNode) error {
	for i := 0; i < crashEvents; i += 2 {
		messages := repositorytest.Messages(2)
		for j := range messages {
			messages[j].ID, messages[j].Payload = fmt.Sprint(i+j), fmt.Appendf(nil, "%0100d", i+j)
		}
		if _, err := n.events.Publish(context.Background(), w.stream, messages); err != nil {
			return err
		}
	}
	return nil
}

// finishWork starts a new node, which completes all remaining work: it
// subscribes, publishes, replays a dead letter and then all events, and deletes
// the subscription. retries is the number of retries that all of its store
// requests share: 0 selects the default, a negative number none.
func (w *crashWorld) finishWork(retries int) error {
	id := w.subscription(0)
	n := w.startNode(w.account.Transport, retries, false, delivery.Options{
		Owns:          func(shard int) bool { return shard == repository.ShardOf(id.Cursor()) }, // the node serves the only shard that contains a cursor
		CheckInterval: time.Hour,
	})
	defer n.stop()
	wait := func() {
		<-time.After(2 * time.Minute) // time of the synctest bubble
		synctest.Wait()
	}
	ctx := context.Background()
	switch err := w.putSubscription(n, 0); {
	case domain.KindOf(err) == domain.Conflict: // an earlier node has already deleted the subscription
		wait()
		return nil
	case err != nil:
		return err
	}
	if err := w.publishAll(n); err != nil {
		return err
	}
	wait()
	s, err := n.documents.Standing(ctx, id.Cursor())
	if err != nil {
		return err
	}
	w.isHealthy.Store(s.Counters.Errored > 0)
	for followed := range 2 {
		if s, err = n.documents.Standing(ctx, id.Cursor()); err != nil {
			return err
		}
		if s.Followed > followed {
			continue
		}
		if followed == 0 {
			err = n.replays.ReplayOne(ctx, w.owner, domain.DeliveryID{Subscription: id, Entry: domain.EntryID{Number: crashFailing}})
		} else {
			_, err = n.replays.Start(ctx, w.owner, id, domain.ReplayRange{From: time.Unix(0, 0), To: time.Now().Add(time.Hour), Rate: domain.MaxReplayRate})
		}
		if err != nil {
			return err
		}
		wait()
	}
	if s, err = n.documents.Standing(ctx, id.Cursor()); err != nil {
		return err
	}
	if w.account.Transport.Fired() == 0 { // no node has crashed
		require.Equal(w, domain.Counters{
			Triggered: 2*crashEvents + 1, Delivered: 2 * crashEvents, Errored: 1, Attempts: s.Counters.Attempts,
		}, s.Counters, "each is delivered, is a dead letter, or is replayed, and is counted once")
	}
	if _, err := n.subscriptions.Delete(ctx, w.owner, id, subscribe.Match{}); err != nil && domain.KindOf(err) != domain.NotFound {
		return err
	}
	wait()
	return nil
}

// A node crashes at each of its store requests in turn: of a subscription, of
// appends that begin new stream segments, of calls, of replays, and of the
// deletion, which retires the cursor. Then another node continues.
func TestASubscription_SurvivesACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					if crashed := crashSubscription(t, n, last); !crashed {
						require.Greater(t, n, 60)
						return
					}
				}
			})
		})
	}
}

// crashSubscription runs a node with a crash at the n-th store request. It
// returns false if the run needed fewer requests.
func crashSubscription(t *testing.T, n int, last faulty.Fault) (crashed bool) {
	w := newCrashWorld(t)
	w.account.Transport.CrashAt(n, last)
	_ = w.finishWork(-1)
	crashed = w.account.Transport.Fired() > 0
	w.account.Transport.Break(nil)
	require.NoError(t, w.finishWork(0), "crash at request %d", n)

	documents, cursor := pushstore.New(w.account.Connect(), w.account.Content, pushstore.Options{}), w.subscription(0).Cursor()
	require.Equal(t, crashEvents, w.stored(documents), "crash at request %d: each event is stored once", n)
	s, err := documents.Standing(t.Context(), cursor)
	require.NoError(t, err)
	c := s.Counters
	require.Equal(t, domain.Closed, s.State, "crash at request %d", n)
	require.Zero(t, s.Outstanding(), "crash at request %d", n)
	require.Equal(t, domain.Counters{
		Triggered: 2*crashEvents + 1, Delivered: 2 * crashEvents, Errored: 1, Attempts: c.Attempts,
	}, c, "crash at request %d", n)
	untraced := w.callsOf(cursor) - int(c.Attempts)
	require.True(t, untraced >= 0 && untraced <= crashConcurrency, "crash at request %d: %d calls without a trace", n, untraced)
	require.GreaterOrEqual(t, int(c.Attempts), 2*crashEvents+2)
	_, _, err = documents.Load(t.Context(), cursor, domain.Owner{Incarnation: "late", Limit: 1}, time.Now)
	require.Equal(t, domain.NotFound, domain.KindOf(err), "crash at request %d: the cursor is retired", n)
	listed, _, err := documents.Cursors(t.Context(), repository.ShardOf(cursor))
	require.NoError(t, err)
	require.Empty(t, listed, "crash at request %d: no shard has the cursor", n)
	return crashed
}

// callsBy returns the number of calls that node n is making.
func (w *crashWorld) callsBy(n *subscriptionNode) (calls int) {
	for i := range crashSubscriptions {
		for number := range int64(crashEvents) {
			if n.engine.IsCalling(w.subscription(i).Cursor(), domain.EntryID{Number: number}) {
				calls++
			}
		}
	}
	return calls
}

// stored returns the number of stored events. It checks that the stream has
// several segments.
func (w *crashWorld) stored(documents *pushstore.Store) (n int) {
	w.Helper()
	at := domain.Position{}
	for {
		found, err := documents.Read(w.Context(), w.stream, at, 100)
		require.NoError(w, err)
		if len(found.Entries) == 0 {
			require.GreaterOrEqual(w, at.Segment, 2)
			return n
		}
		n += len(found.Entries)
		at = found.Entries[len(found.Entries)-1].Position.Next()
	}
}

// crashSubscriptions is the number of subscriptions that two nodes share.
const crashSubscriptions = 5

// A node that stops crashes at each of its last store requests in turn. When it
// stops, it has calls in progress, results to store, cursors to release, and
// shards to return.
func TestANodeThatLeaves_MayCrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					if crashed := crashLeavingNode(t, n, last); !crashed {
						require.Greater(t, n, 5)
						return
					}
				}
			})
		})
	}
}

func crashLeavingNode(t *testing.T, n int, last faulty.Fault) (crashed bool) {
	w := newCrashWorld(t)
	w.isHealthy.Store(true)
	line := &faulty.Transport{Next: w.account.Engine.Transport()}
	leaving, other := w.startNode(line, -1, true, delivery.Options{}), w.startNode(w.account.Transport, 0, true, delivery.Options{})
	defer leaving.stop()
	defer other.stop()
	<-time.After(time.Minute) // meanwhile the two nodes divide the shards
	for i := range crashSubscriptions {
		require.NoError(t, w.putSubscription(other, i))
	}
	<-time.After(10 * time.Second)
	require.NoError(t, w.publishAll(other))
	for began := time.Now(); w.callsBy(leaving) < 2; { // the node must be stopped during at least two calls
		require.Less(t, time.Since(began), 10*time.Second)
		<-time.After(10 * time.Millisecond)
	}
	line.CrashAt(n, last)
	leaving.stop()
	crashed = line.Fired() > 0
	<-time.After(2 * time.Minute)
	other.stop()
	repeated := 0
	for i := range crashSubscriptions {
		cursor := w.subscription(i).Cursor()
		s, err := other.documents.Standing(t.Context(), cursor)
		require.NoError(t, err)
		require.Equal(t, domain.Counters{Triggered: crashEvents, Delivered: crashEvents, Attempts: crashEvents}, s.Counters, "crash at request %d", n)
		require.Zero(t, s.Outstanding())
		untraced := w.callsOf(cursor) - crashEvents
		require.True(t, untraced >= 0 && untraced <= crashConcurrency, "crash at request %d: %d calls without a trace", n, untraced)
		repeated += untraced
	}
	if !crashed {
		require.Zero(t, repeated, "a node that leaves in order hands over what it has called")
	}
	return crashed
}
