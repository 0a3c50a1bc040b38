package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hubURL = "https://hub.example.org"

// A world is a store in memory on which nodes work, by the clock of a bubble, and the receivers of
// watches.
type world struct {
	*testing.T
	streams   *memory.Streams
	cursors   *memory.Cursors
	watches   *memory.Watches
	resources *memory.Resources
	policy    domain.Policy
	owner     domain.ActorID
	began     time.Time

	mu     sync.Mutex
	status map[string]int // of the answers of a callback; default 200, noAnswer: none
	calls  []call
}

// noAnswer is the status of a callback that cannot be reached, or that answers too late.
const noAnswer = -1

// A call is one that a watch got.
type call struct {
	callback string
	event    domain.ChangeEvent
	version  int64
	attempts int
	after    time.Duration // since the world began
}

func newWorld(t *testing.T) *world {
	owner, err := domain.ParseActorID("owner")
	require.NoError(t, err)
	w := &world{T: t, policy: domain.WatchPolicy(time.Hour, 5), owner: owner, began: time.Now(), status: make(map[string]int)}
	w.streams, w.cursors, w.resources = memory.NewStreams(repository.MessageRetention, time.Now), memory.NewCursors(time.Now), memory.NewResources(time.Now)
	w.watches = memory.NewWatches(w.cursors)
	return w
}

// A node serves the world until it stops.
type node struct {
	*watch.Service
	world *world
	stop  func()
}

// Receiver implements [delivery.Receivers].
func (n *node) Receiver(ctx context.Context, cursor domain.CursorID) (delivery.Receiver, error) {
	found, err := n.Callee(ctx, cursor)
	if err != nil {
		return delivery.Receiver{}, err
	}
	return delivery.Receiver{Policy: n.world.policy, Target: found.CallbackURL}, nil
}

// Call implements [delivery.Caller].
func (n *node) Call(_ context.Context, c delivery.Call) domain.Answer {
	change, err := domain.ChangeOf(&c.Entry.Message, c.Entry.Position.Number)
	if err != nil {
		panic(err)
	}
	w := n.world
	w.mu.Lock()
	defer w.mu.Unlock()
	callback := c.Receiver.Target.(string)
	w.calls = append(w.calls, call{callback, change.Event, change.Version, c.Attempt, time.Since(w.began).Round(time.Second)})
	switch status := w.status[callback]; status {
	case 0:
	case noAnswer:
		return domain.Answer{Error: "the receiver refused the connection"}
	default:
		return domain.Answer{Status: status}
	}
	return domain.Answer{Status: http.StatusOK}
}

// start starts a node. One without a relay publishes nothing.
func (w *world) start(hasRelay bool) *node { return w.startOn(w.cursors, nil, hasRelay) }

// startOn starts a node on cursors. With nodes it shares the cursors with others.
func (w *world) startOn(cursors repository.Cursors, nodes repository.Nodes, hasRelay bool) *node {
	n := &node{world: w}
	base, err := domain.ParseResourceBase(hubURL)
	require.NoError(w, err)
	engine := delivery.New(delivery.Ports{Streams: w.streams, Cursors: cursors, Shards: w.cursors, Nodes: nodes, Receivers: n, Caller: n}, delivery.Options{})
	relay := watch.NewRelay(w.resources, w.streams, engine.Published, watch.RelayOptions{})
	n.Service = watch.New(watch.Ports{Watches: w.watches, Resources: w.resources, Changes: w.resources, Cursors: w.cursors, Streams: w.streams}, watch.Options{
		Base: base, Created: engine.Created, Changed: engine.Changed,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	if hasRelay {
		running.Go(func() { _ = relay.Run(ctx) })
	}
	n.stop = func() { cancel(); running.Wait() }
	synctest.Wait()
	return n
}

func (w *world) answer(callback string, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status[callback] = status
}

// called returns the calls since it was called last.
func (w *world) called() []call {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// creates creates a watch on a document with a callback.
func (n *node) creates(document, callback string) domain.WatchID {
	n.world.Helper()
	id, err := n.Create(n.world.Context(), n.world.owner, watch.Draft{Resource: hubURL + "/v1/resources/" + document, CallbackURL: callback, MayBeAbsent: true})
	require.NoError(n.world, err)
	synctest.Wait()
	return id
}

func (w *world) document(name string) domain.Resource {
	r, err := domain.Kept(name)
	require.NoError(w, err)
	return r
}

func (n *node) puts(document string) {
	n.world.Helper()
	_, _, err := n.PutDocument(n.world.Context(), n.world.document(document), []byte(`{}`), watch.Condition{})
	require.NoError(n.world, err)
}

func (n *node) deletes(document string) {
	n.world.Helper()
	require.NoError(n.world, n.DeleteDocument(n.world.Context(), n.world.document(document), watch.Condition{}))
}

// counts demands that a watch has counters.
func (n *node) counts(id domain.WatchID, want watch.Counters) {
	n.world.Helper()
	sleep(time.Minute) // what was filtered is settled late
	found, err := n.Get(n.world.Context(), n.world.owner, id)
	require.NoError(n.world, err)
	require.Equal(n.world, want, found.Counters)
}

func inBubble(t *testing.T, name string, test func(w *world)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(newWorld(t)) })
	})
}

const one, two = "https://example.com/1", "https://example.com/2"

// The cases of the specification of watches, each by its number; those about HTTP are in other packages.
func TestW1AndW5_EachWatchIsToldOfEachChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		first, second := n.creates("a", one), n.creates("a", two)
		require.Empty(t, w.called())
		found, err := n.Get(t.Context(), w.owner, first)
		require.NoError(t, err)
		require.Equal(t, &watch.Watch{ID: first, Resource: hubURL + "/v1/resources/a", CallbackURL: one, Created: w.began.UTC()}, found)
		n.puts("a")
		require.ElementsMatch(t, []call{{one, domain.ResourceUpdated, 1, 0, 0}, {two, domain.ResourceUpdated, 1, 0, 0}}, w.called())
		n.puts("a")
		n.puts("a")
		require.Len(t, w.called(), 4)
		n.counts(first, watch.Counters{Triggered: 3, Delivered: 3})
		n.counts(second, watch.Counters{Triggered: 3, Delivered: 3})
	})
}

func TestW2_AWatchThatCannotBeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		const a = hubURL + "/v1/resources/a"
		for _, tc := range []struct {
			draft watch.Draft
			kind  domain.Kind
			where string
		}{
			{watch.Draft{Resource: "/v1/resources/a", CallbackURL: one}, domain.Invalid, "/resource: "},
			{watch.Draft{Resource: "https://example.com/v1/resources/a", CallbackURL: one}, domain.Invalid, "/resource: "},
			{watch.Draft{Resource: a, CallbackURL: "/hook"}, domain.Invalid, "/callback: "},
			{watch.Draft{Resource: a, CallbackURL: "ftp://example.com"}, domain.Invalid, "/callback: "},
			{watch.Draft{Resource: a, CallbackURL: hubURL + "/v1/peek"}, domain.Invalid, "/callback: "},
			{watch.Draft{Resource: hubURL + "/v1/resources/b", CallbackURL: one}, domain.NotFound, ""},
		} {
			_, err := n.Create(t.Context(), w.owner, tc.draft)
			require.Equal(t, tc.kind, domain.KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.where)
		}
		all, err := n.List(t.Context(), w.owner, 0, 100)
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

func TestW3_ANewCallbackHoldsForWhatIsNotInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		id := n.creates("a", one)
		w.answer(one, http.StatusInternalServerError)
		n.puts("a")
		require.Len(t, w.called(), 1)
		draft := watch.Draft{Resource: hubURL + "/v1/resources/a", CallbackURL: two}
		require.NoError(t, n.Replace(t.Context(), w.owner, id, draft))
		n.puts("a")
		require.Equal(t, []call{{two, domain.ResourceUpdated, 2, 0, 0}}, w.called())
		sleep(time.Hour)
		require.Equal(t, []call{{two, domain.ResourceUpdated, 1, 1, time.Hour}}, w.called())
		n.counts(id, watch.Counters{Triggered: 2, Delivered: 2})
		draft.Resource = hubURL + "/v1/resources/b"
		require.Equal(t, domain.Invalid, domain.KindOf(n.Replace(t.Context(), w.owner, id, draft)))
		other, err := domain.ParseActorID("other")
		require.NoError(t, err)
		draft.Resource = hubURL + "/v1/resources/a"
		require.Equal(t, domain.NotFound, domain.KindOf(n.Replace(t.Context(), other, id, draft)))
	})
}

func TestW4_ADeletedWatchIsCalledNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		id := n.creates("a", one)
		w.answer(one, http.StatusInternalServerError)
		n.puts("a")
		require.Len(t, w.called(), 1)
		require.NoError(t, n.Delete(t.Context(), w.owner, id))
		_, err := n.Get(t.Context(), w.owner, id)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		require.Equal(t, domain.NotFound, domain.KindOf(n.Delete(t.Context(), w.owner, id)))
		n.puts("a")
		sleep(24 * time.Hour)
		require.Empty(t, w.called())
		standing, err := w.cursors.Standing(t.Context(), id.Cursor(w.owner))
		require.NoError(t, err)
		require.Equal(t, domain.Counters{Triggered: 1, Cancelled: 1, Attempts: 1}, standing.Counters)
	})
}

func TestW6_ACreationAndAChangeThatFailNotifyNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		id := n.creates("a", one)
		n.puts("a")
		_, _, err := n.PutDocument(t.Context(), w.document("a"), []byte(`1`), watch.Condition{IsAbsent: true})
		require.ErrorIs(t, err, watch.ErrChanged)
		_, _, err = n.PutDocument(t.Context(), w.document("a"), []byte(`1`), watch.Condition{Versions: []string{"other"}})
		require.ErrorIs(t, err, watch.ErrChanged)
		require.Empty(t, w.called())
		n.deletes("a")
		require.Equal(t, []call{{one, domain.ResourceDeleted, 1, 0, 0}}, w.called())
		require.Equal(t, domain.NotFound, domain.KindOf(n.DeleteDocument(t.Context(), w.document("a"), watch.Condition{})))
		n.puts("a")
		require.Empty(t, w.called())
		n.puts("a")
		require.Equal(t, []call{{one, domain.ResourceUpdated, 2, 0, 0}}, w.called())
		n.counts(id, watch.Counters{Triggered: 2, Delivered: 2})
	})
}

func TestW7_AnotherResourceNotifiesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.creates("a", one)
		for _, name := range []string{"A", "a.", "aa", "b"} {
			n.puts(name)
			n.puts(name)
			n.deletes(name)
		}
		require.Empty(t, w.called())
		n.puts("a")
		for _, uri := range []string{
			"http://hub.example.org/v1/resources/a", "https://example.org/v1/resources/a", "https://hub.example.org:8443/v1/resources/a",
			hubURL + "/v0/resources/a", hubURL + "/v1/resources/", hubURL + "/v1/resources/a/b", hubURL + "/v1/resources/a?x=1",
		} {
			_, err := n.Create(t.Context(), w.owner, watch.Draft{Resource: uri, CallbackURL: two})
			require.Equal(t, domain.Invalid, domain.KindOf(err), uri)
		}
	})
}

func TestW8_OnlyAStatusOf200IsASuccess(t *testing.T) {
	for _, status := range []int{201, 202, 204, 301, 404, 410, 429, 500, 503, noAnswer} {
		inBubble(t, fmt.Sprint(status), func(w *world) {
			n := w.start(true)
			defer n.stop()
			n.puts("a")
			id := n.creates("a", one)
			w.answer(one, status)
			n.puts("a")
			require.Len(w, w.called(), 1)
			n.counts(id, watch.Counters{Triggered: 1})
			w.answer(one, http.StatusOK)
			sleep(time.Hour)
			require.Equal(w, []call{{one, domain.ResourceUpdated, 1, 1, time.Hour}}, w.called())
			n.counts(id, watch.Counters{Triggered: 1, Delivered: 1})
		})
	}
}

func TestW10AndW11_AttemptsFollowTheSchedule(t *testing.T) {
	for _, tc := range []struct {
		period   time.Duration
		attempts int
		at       []time.Duration
	}{
		{time.Hour, 5, []time.Duration{0, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour}},
		{time.Hour, 1, []time.Duration{0}},
		{10 * time.Second, 5, []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second}},
	} {
		inBubble(t, fmt.Sprintf("%s, %d", tc.period, tc.attempts), func(w *world) {
			w.policy = domain.WatchPolicy(tc.period, tc.attempts)
			n := w.start(true)
			defer n.stop()
			n.puts("a")
			id := n.creates("a", one)
			w.answer(one, http.StatusInternalServerError)
			n.puts("a")
			sleep(24 * time.Hour)
			calls := w.called()
			require.Len(w, calls, len(tc.at))
			for i, c := range calls {
				require.Equal(w, call{one, domain.ResourceUpdated, 1, i, tc.at[i]}, c)
			}
			n.counts(id, watch.Counters{Triggered: 1, Errored: 1})
			dead, err := w.cursors.DeadLetters(w.Context(), id.Cursor(w.owner), domain.EntryID{Number: -1}, 10)
			require.NoError(w, err)
			require.Len(w, dead, 1)
		})
	}
}

// outstanding returns the deliveries of a watch that have not ended, and its counters, as they are stored.
func (w *world) outstanding(id domain.WatchID) (int64, domain.Counters) {
	standing, err := w.cursors.Standing(w.Context(), id.Cursor(w.owner))
	require.NoError(w, err)
	return int64(len(standing.Open) + standing.Retries), standing.Counters
}

func TestW13_TheCountersAddUpAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		var ids []domain.WatchID
		for i, status := range []int{0, http.StatusInternalServerError, noAnswer, http.StatusInternalServerError} {
			callback := fmt.Sprint("https://example.com/", i)
			ids = append(ids, n.creates("a", callback))
			w.answer(callback, status)
		}
		var seen domain.Counters // the sum of all states
		for hour := range 12 {
			if hour < 5 {
				n.puts("a")
			}
			switch hour {
			case 1:
				w.answer("https://example.com/2", http.StatusOK)
			case 3:
				require.NoError(t, n.Delete(t.Context(), w.owner, ids[3]))
			}
			for range 6 {
				sleep(10 * time.Minute)
				for _, id := range ids {
					outstanding, c := w.outstanding(id)
					require.Equal(t, c.Triggered, c.Delivered+c.Errored+c.Cancelled+outstanding, "%+v", c)
					seen.Triggered, seen.Errored, seen.Cancelled = seen.Triggered+outstanding, seen.Errored+c.Errored, seen.Cancelled+c.Cancelled
				}
			}
		}
		require.NotZero(t, seen.Triggered)
		require.NotZero(t, seen.Errored)
		require.NotZero(t, seen.Cancelled)
		n.counts(ids[0], watch.Counters{Triggered: 5, Delivered: 5})
		n.counts(ids[1], watch.Counters{Triggered: 5, Errored: 5})
		n.counts(ids[2], watch.Counters{Triggered: 5, Delivered: 5})
		_, c := w.outstanding(ids[3])
		require.Equal(t, domain.Counters{Triggered: 3, Cancelled: 3, Attempts: c.Attempts}, c)
	})
}

// A dyingCursors is that of a node which dies before it stores the outcome of a call.
type dyingCursors struct{ repository.Cursors }

func (dyingCursors) Settle(ctx context.Context, _ domain.CursorID, _ repository.CursorVersion, _ domain.Settlement) (repository.CursorVersion, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestW14_AHubThatDiesAfterTheAnswer_CallsAgainAndCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startOn(dyingCursors{w.cursors}, nil, true)
		n.puts("a")
		id := n.creates("a", one)
		n.puts("a")
		require.Equal(t, []call{{one, domain.ResourceUpdated, 1, 0, 0}}, w.called())
		n.stop()
		n = w.start(true)
		defer n.stop()
		sleep(time.Minute)
		calls := w.called()
		require.Len(t, calls, 1)
		require.Equal(t, call{one, domain.ResourceUpdated, 1, 0, calls[0].after}, calls[0])
		n.counts(id, watch.Counters{Triggered: 1, Delivered: 1})
	})
}

func TestW15_AHubThatWasAwayMakesOneAttemptAndThenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		n.puts("a")
		id := n.creates("a", one)
		w.answer(one, http.StatusInternalServerError)
		n.puts("a")
		require.Len(t, w.called(), 1)
		n.stop()
		sleep(9 * time.Hour)
		n = w.start(true)
		defer n.stop()
		sleep(24 * time.Hour)
		calls := w.called()
		require.Len(t, calls, 4)
		for i, after := range []time.Duration{9 * time.Hour, 10 * time.Hour, 12 * time.Hour, 16 * time.Hour} {
			require.Equal(t, after, calls[i].after.Round(time.Minute), "attempt %d", i+2)
		}
		n.counts(id, watch.Counters{Triggered: 1, Errored: 1})
	})
}

func TestW17_AListHasAnOffsetAndACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		var ids []domain.WatchID
		for range 5 {
			ids = append(ids, n.creates("a", one))
			sleep(time.Millisecond)
		}
		all, err := n.List(t.Context(), w.owner, 2, 2)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, ids[2:4], []domain.WatchID{all[0].ID, all[1].ID})
	})
}

// A node dies after a change was stored: the relay of another one publishes it.
func TestAChangeThatANodeHasLeft_IsPublishedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		dying := w.start(false)
		dying.puts("a")
		id := dying.creates("a", one)
		dying.puts("a")
		dying.puts("a")
		dying.deletes("a")
		dying.stop()
		require.Empty(t, w.called())
		n := w.start(true)
		defer n.stop()
		sleep(time.Minute)
		calls := w.called()
		require.Len(t, calls, 3)
		n.counts(id, watch.Counters{Triggered: 3, Delivered: 3})
		left, err := w.resources.Changes(t.Context(), w.document("a"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// A crash has kept Create from creating the cursor: the next read of the watch creates it, and no
// change is missing.
func TestAWatchWithoutACursor_IsServedOnceItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		version, err := w.resources.MarkWatched(t.Context(), w.document("a"), false)
		require.NoError(t, err)
		id := domain.NewWatchID(time.Now(), [10]byte{})
		require.NoError(t, w.watches.CreateWatch(t.Context(), &repository.Watch{ID: id, Owner: w.owner, Resource: w.document("a"), CallbackURL: one, After: version, Created: time.Now()}))
		n.puts("a")
		require.Empty(t, w.called())
		found, err := n.Get(t.Context(), w.owner, id)
		require.NoError(t, err)
		require.EqualValues(t, 1, found.Triggered)
		sleep(time.Minute)
		require.Len(t, w.called(), 1)
		n.counts(id, watch.Counters{Triggered: 1, Delivered: 1})
	})
}

// Two nodes share the watches of ten documents, which change a hundred times each.
func TestW12_TwoNodesDeliverEachNotificationOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		nodes := memory.NewNodes(time.Now)
		first, second := w.startOn(w.cursors, nodes, true), w.startOn(w.cursors, nodes, true)
		defer first.stop()
		defer second.stop()
		sleep(time.Minute) // they have shared the cursors
		const documents, changes = 10, 100
		var ids []domain.WatchID
		for i := range documents {
			ids = append(ids, first.creates(fmt.Sprint("d", i), fmt.Sprint("https://example.com/", i)))
		}
		for range 1 + changes { // the first one is a creation
			for i := range documents {
				[]*node{first, second}[i%2].puts(fmt.Sprint("d", i))
			}
		}
		sleep(10 * time.Minute)
		times := make(map[call]int)
		for _, c := range w.called() {
			times[call{callback: c.callback, version: c.version}]++
		}
		require.Len(t, times, documents*changes)
		for c, n := range times {
			require.Equal(t, 1, n, "%+v", c)
		}
		for _, id := range ids {
			first.counts(id, watch.Counters{Triggered: changes, Delivered: changes})
		}
	})
}

// Two nodes change one document at the same moment, and both publish.
func TestW12_ChangesOfTwoNodesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.start(true)
		defer first.stop()
		id := first.creates("a", one)
		first.puts("a")
		relay := watch.NewRelay(w.resources, w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = relay.Run(ctx) })
		defer func() { cancel(); running.Wait() }()
		second := watch.New(watch.Ports{Watches: w.watches, Resources: w.resources, Changes: w.resources, Cursors: w.cursors, Streams: w.streams}, watch.Options{})
		var putting sync.WaitGroup
		for range 50 {
			for _, s := range []*watch.Service{first.Service, second} {
				putting.Go(func() {
					_, _, err := s.PutDocument(t.Context(), w.document("a"), []byte(`{}`), watch.Condition{})
					if domain.KindOf(err) != domain.Busy {
						require.NoError(t, err)
					}
				})
			}
		}
		putting.Wait()
		sleep(time.Minute)
		versions := make(map[int64]int)
		for _, c := range w.called() {
			versions[c.version]++
		}
		marked, err := w.resources.MarkWatched(t.Context(), w.document("a"), false)
		require.NoError(t, err)
		require.Len(t, versions, int(marked))
		for version, n := range versions {
			require.Equal(t, 1, n, "version %d", version)
		}
		first.counts(id, watch.Counters{Triggered: marked, Delivered: marked})
	})
}

// A countedResources counts looks for changes.
type countedResources struct {
	*memory.Resources
	looks *atomic.Int64
}

func (c countedResources) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	c.looks.Add(1)
	return c.Resources.Unpublished(ctx, before, limit)
}

func TestAWatch_ShowsItsLastCallsAndWhenTheNextIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		id := n.creates("a", one)
		show := func() *watch.Attempts {
			sleep(time.Second)
			found, err := n.Attempts(t.Context(), w.owner, id)
			require.NoError(t, err)
			return found
		}
		require.Equal(t, &watch.Attempts{}, show())
		n.puts("a")
		require.Len(t, show().Last, 1)
		require.Zero(t, show().Next)
		w.answer(one, http.StatusInternalServerError)
		failed := time.Now()
		n.puts("a")
		found := show()
		require.Equal(t, failed.Add(time.Hour).UTC(), found.Next.UTC())
		require.Len(t, found.Last, 2)
		require.Equal(t, []int{http.StatusOK, http.StatusInternalServerError}, []int{found.Last[0].Status, found.Last[1].Status})
		other, err := domain.ParseActorID("other")
		require.NoError(t, err)
		_, err = n.Attempts(t.Context(), other, id)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
	})
}

func TestOneNodeAtATime_LooksForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var looks atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var running sync.WaitGroup
		for range 10 {
			relay := watch.NewRelay(countedResources{w.resources, &looks}, w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{})
			running.Go(func() { _ = relay.Run(ctx) })
		}
		running.Wait()
		require.Greater(t, looks.Load(), int64(time.Hour/(33*time.Second)))
		require.LessOrEqual(t, looks.Load(), int64(time.Hour/(8*time.Second))+1)
	})
}

func TestAWatchIsNotToldOfWhatWasBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(true)
		defer n.stop()
		n.puts("a")
		n.creates("a", one)
		n.puts("a")
		n.puts("a")
		require.Len(t, w.called(), 2)
		late := n.creates("a", two)
		n.puts("a")
		require.ElementsMatch(t, []call{{one, domain.ResourceUpdated, 3, 0, 0}, {two, domain.ResourceUpdated, 3, 0, 0}}, w.called())
		n.counts(late, watch.Counters{Triggered: 1, Delivered: 1})
	})
}

// A failingStreams appends nothing.
type failingStreams struct{ repository.Streams }

func (failingStreams) Append(context.Context, domain.StreamName, []domain.Message) ([]repository.Appended, error) {
	return nil, domain.Errorf(domain.Unavailable, "no store")
}

func TestAChangeIsRemovedOnceItIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.start(false)
		n.creates("a", one)
		n.puts("a")
		n.stop()
		relay := watch.NewRelay(w.resources, failingStreams{}, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{})
		_, err := w.resources.PutResource(t.Context(), &repository.Resource{Resource: w.document("a"), Version: "1"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, relay.Run(ctx))
		left, err := w.resources.Changes(t.Context(), w.document("a"))
		require.NoError(t, err)
		require.Len(t, left, 1)
	})
}
