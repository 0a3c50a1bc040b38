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

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A node dies after it has stored a change. Another node's relay publishes the change.
func TestAChangeOfADeadNode_IsPublishedByAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		dying := w.startNode(false)
		dying.putDocument("a")
		id := dying.createWatch("a", one)
		dying.putDocument("a")
		dying.putDocument("a")
		dying.deleteDocument("a")
		dying.stop()
		require.Empty(t, w.takeCalls())
		n := w.startNode(true)
		defer n.stop()
		sleep(time.Minute)
		calls := w.takeCalls()
		require.Len(t, calls, 3)
		n.requireCounters(id, watch.Counters{Triggered: 3, Delivered: 3})
		left, err := w.resources.Changes(t.Context(), w.documentNamed("a"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// Create crashes before it creates the watch's cursor. The next read of the watch creates the
// cursor, and no change is lost.
func TestAWatchWithoutACursor_IsServedOnceItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		version, err := w.resources.MarkWatched(t.Context(), w.documentNamed("a"), false)
		require.NoError(t, err)
		id := domain.NewWatchID(time.Now(), [10]byte{})
		require.NoError(t, w.watches.CreateWatch(t.Context(), &repository.Watch{ID: id, Owner: w.owner, Resource: w.documentNamed("a"), CallbackURL: one, After: version, Created: time.Now()}))
		n.putDocument("a")
		require.Empty(t, w.takeCalls())
		found, err := n.Get(t.Context(), w.owner, id)
		require.NoError(t, err)
		require.EqualValues(t, 1, found.Triggered)
		sleep(time.Minute)
		require.Len(t, w.takeCalls(), 1)
		n.requireCounters(id, watch.Counters{Triggered: 1, Delivered: 1})
	})
}

// Two nodes share the watches of ten documents, each of which changes a hundred times. Each change
// is delivered once.
func TestW12_TwoNodesDeliverEachNotificationOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		nodes := memory.NewNodes(time.Now)
		first, second := w.startOn(w.cursors, nodes, true), w.startOn(w.cursors, nodes, true)
		defer first.stop()
		defer second.stop()
		sleep(time.Minute) // the nodes need this time to divide the shards
		const documents, changes = 10, 100
		var ids []domain.WatchID
		for i := range documents {
			ids = append(ids, first.createWatch(fmt.Sprint("d", i), fmt.Sprint("https://example.com/", i)))
		}
		for range 1 + changes { // one more: the first write creates the document
			for i := range documents {
				[]*node{first, second}[i%2].putDocument(fmt.Sprint("d", i))
			}
		}
		sleep(10 * time.Minute)
		times := make(map[call]int)
		for _, c := range w.takeCalls() {
			times[call{callback: c.callback, version: c.version}]++
		}
		require.Len(t, times, documents*changes)
		for c, n := range times {
			require.Equal(t, 1, n, "%+v", c)
		}
		for _, id := range ids {
			first.requireCounters(id, watch.Counters{Triggered: changes, Delivered: changes})
		}
	})
}

// Two nodes change a document concurrently, and each node publishes its own changes. Each change is
// delivered once.
func TestW12_ChangesOfTwoNodesAreNotifiedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.startNode(true)
		defer first.stop()
		id := first.createWatch("a", one)
		first.putDocument("a")
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
					_, _, err := s.PutDocument(t.Context(), w.documentNamed("a"), []byte(`{}`), watch.Condition{})
					if domain.KindOf(err) != domain.Busy {
						require.NoError(t, err)
					}
				})
			}
		}
		putting.Wait()
		sleep(time.Minute)
		versions := make(map[int64]int)
		for _, c := range w.takeCalls() {
			versions[c.version]++
		}
		marked, err := w.resources.MarkWatched(t.Context(), w.documentNamed("a"), false)
		require.NoError(t, err)
		require.Len(t, versions, int(marked))
		for version, n := range versions {
			require.Equal(t, 1, n, "version %d", version)
		}
		first.requireCounters(id, watch.Counters{Triggered: marked, Delivered: marked})
	})
}

// A countedResources counts the searches for unpublished changes.
type countedResources struct {
	*memory.Resources
	searches *atomic.Int64
}

func (c countedResources) Unpublished(ctx context.Context, before time.Time, limit int) ([]domain.Resource, error) {
	c.searches.Add(1)
	return c.Resources.Unpublished(ctx, before, limit)
}

func TestAWatch_ShowsItsLastCallsAndWhenTheNextIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		id := n.createWatch("a", one)
		show := func() *watch.Attempts {
			sleep(time.Second)
			found, err := n.Attempts(t.Context(), w.owner, id)
			require.NoError(t, err)
			return found
		}
		require.Equal(t, &watch.Attempts{}, show())
		n.putDocument("a")
		require.Len(t, show().Last, 1)
		require.Zero(t, show().Next)
		w.answer(one, http.StatusInternalServerError)
		failed := time.Now()
		n.putDocument("a")
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

func TestOneNodeAtATime_SearchesForUnpublishedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var searches atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var running sync.WaitGroup
		for range 10 {
			relay := watch.NewRelay(countedResources{w.resources, &searches}, w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{})
			running.Go(func() { _ = relay.Run(ctx) })
		}
		running.Wait()
		require.Greater(t, searches.Load(), int64(time.Hour/(33*time.Second)))
		require.LessOrEqual(t, searches.Load(), int64(time.Hour/(8*time.Second))+1)
	})
}

func TestAWatch_IsNotNotifiedOfEarlierChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		n.createWatch("a", one)
		n.putDocument("a")
		n.putDocument("a")
		require.Len(t, w.takeCalls(), 2)
		late := n.createWatch("a", two)
		n.putDocument("a")
		require.ElementsMatch(t, []call{{one, domain.ResourceUpdated, 3, 0, 0}, {two, domain.ResourceUpdated, 3, 0, 0}}, w.takeCalls())
		n.requireCounters(late, watch.Counters{Triggered: 1, Delivered: 1})
	})
}

// The notice of a removal may arrive before the notice of the Dequeue. It must not be published
// first.
func TestARemoval_IsPublishedAfterEarlierChanges(t *testing.T) {
	w := newWorld(t)
	var published []domain.ChangeEvent
	relay := watch.NewRelay(w.resources, w.streams, func(_ domain.StreamName, messages []domain.Message, _ []repository.Appended) {
		c, err := domain.ChangeOf(&messages[0], int64(len(published)))
		require.NoError(t, err)
		published = append(published, c.Event)
	}, watch.RelayOptions{})
	dequeued := domain.Notice{Audience: domain.ForWatchers, Recipient: w.owner, Bundle: domain.BundleID{1}, Version: 1, Number: 7, Since: w.began}
	removed := domain.Notice{Audience: domain.ForWatchersOfRemoval, Recipient: w.owner, Bundle: domain.BundleID{1}, Version: 2, Since: w.began}
	err := relay.Notify(t.Context(), removed)
	require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
	require.Empty(t, published)
	for range 2 {
		require.NoError(t, relay.Notify(t.Context(), dequeued))
		require.NoError(t, relay.Notify(t.Context(), removed))
	}
	require.Equal(t, []domain.ChangeEvent{domain.ResourceUpdated, domain.ResourceDeleted}, published)
}

// A failingStreams is a store of streams whose appends fail.
type failingStreams struct{ repository.Streams }

func (failingStreams) Append(context.Context, domain.StreamName, []domain.Message) ([]repository.Appended, error) {
	return nil, domain.Errorf(domain.Unavailable, "no store")
}

func TestAChangeIsRemovedOnceItIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(false)
		n.createWatch("a", one)
		n.putDocument("a")
		n.stop()
		relay := watch.NewRelay(w.resources, failingStreams{}, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{})
		_, err := w.resources.PutResource(t.Context(), &repository.Resource{Resource: w.documentNamed("a"), Version: "1"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, relay.Run(ctx))
		left, err := w.resources.Changes(t.Context(), w.documentNamed("a"))
		require.NoError(t, err)
		require.Len(t, left, 1)
	})
}
