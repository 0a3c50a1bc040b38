package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
)

// The numbers in the names of these tests refer to the specification of watches. The tests of its
// HTTP cases are in other packages.
func TestW1AndW5_EachWatchIsNotifiedOfEachChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		first, second := n.createWatch("a", one), n.createWatch("a", two)
		require.Empty(t, w.takeCalls())
		found, err := n.Get(t.Context(), w.owner, first)
		require.NoError(t, err)
		require.Equal(t, &watch.Watch{ID: first, Resource: hubURL + "/v1/resources/a", CallbackURL: one, Created: w.began.UTC()}, found)
		n.putDocument("a")
		require.ElementsMatch(t, []call{{one, domain.ResourceUpdated, 1, 0, 0}, {two, domain.ResourceUpdated, 1, 0, 0}}, w.takeCalls())
		n.putDocument("a")
		n.putDocument("a")
		require.Len(t, w.takeCalls(), 4)
		n.requireCounters(first, watch.Counters{Triggered: 3, Delivered: 3})
		n.requireCounters(second, watch.Counters{Triggered: 3, Delivered: 3})
	})
}

func TestW2_AnInvalidWatchIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
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

func TestW3_ANewCallbackAppliesToDeliveriesNotInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		id := n.createWatch("a", one)
		w.answer(one, http.StatusInternalServerError)
		n.putDocument("a")
		require.Len(t, w.takeCalls(), 1)
		draft := watch.Draft{Resource: hubURL + "/v1/resources/a", CallbackURL: two}
		require.NoError(t, n.Replace(t.Context(), w.owner, id, draft))
		n.putDocument("a")
		require.Equal(t, []call{{two, domain.ResourceUpdated, 2, 0, 0}}, w.takeCalls())
		sleep(time.Hour)
		require.Equal(t, []call{{two, domain.ResourceUpdated, 1, 1, time.Hour}}, w.takeCalls())
		n.requireCounters(id, watch.Counters{Triggered: 2, Delivered: 2})
		draft.Resource = hubURL + "/v1/resources/b"
		require.Equal(t, domain.Invalid, domain.KindOf(n.Replace(t.Context(), w.owner, id, draft)))
		other, err := domain.ParseActorID("other")
		require.NoError(t, err)
		draft.Resource = hubURL + "/v1/resources/a"
		require.Equal(t, domain.NotFound, domain.KindOf(n.Replace(t.Context(), other, id, draft)))
	})
}

func TestW4_ADeletedWatchIsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		id := n.createWatch("a", one)
		w.answer(one, http.StatusInternalServerError)
		n.putDocument("a")
		require.Len(t, w.takeCalls(), 1)
		require.NoError(t, n.Delete(t.Context(), w.owner, id))
		_, err := n.Get(t.Context(), w.owner, id)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		require.Equal(t, domain.NotFound, domain.KindOf(n.Delete(t.Context(), w.owner, id)))
		n.putDocument("a")
		sleep(24 * time.Hour)
		require.Empty(t, w.takeCalls())
		standing, err := w.cursors.Standing(t.Context(), id.Cursor(w.owner))
		require.NoError(t, err)
		require.Equal(t, domain.Counters{Triggered: 1, Cancelled: 1, Attempts: 1}, standing.Counters)
	})
}

// The shard's entry records that the watch has changed, but stale reads still return the deleted
// watch.
func TestW4_AWatchThatAnotherNodeHasDeleted_IsRetiredAlthoughReadsAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		id := n.createWatch("a", one)
		var err error
		n.stale, err = w.watches.Watch(t.Context(), w.owner, id)
		require.NoError(t, err)
		n.putDocument("a")
		require.Len(t, w.takeCalls(), 1)
		require.NoError(t, w.watches.DeleteWatch(t.Context(), w.owner, id))
		sleep(time.Hour)
		_, _, err = w.cursors.Load(t.Context(), id.Cursor(w.owner), domain.Owner{Incarnation: "other", Limit: 1}, time.Now)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
	})
}

func TestW6_CreationsAndFailedChangesNotifyNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		id := n.createWatch("a", one)
		n.putDocument("a")
		_, _, err := n.PutDocument(t.Context(), w.documentNamed("a"), []byte(`1`), watch.Condition{IsAbsent: true})
		require.ErrorIs(t, err, watch.ErrChanged)
		_, _, err = n.PutDocument(t.Context(), w.documentNamed("a"), []byte(`1`), watch.Condition{Versions: []string{"other"}})
		require.ErrorIs(t, err, watch.ErrChanged)
		require.Empty(t, w.takeCalls())
		n.deleteDocument("a")
		require.Equal(t, []call{{one, domain.ResourceDeleted, 1, 0, 0}}, w.takeCalls())
		require.Equal(t, domain.NotFound, domain.KindOf(n.DeleteDocument(t.Context(), w.documentNamed("a"), watch.Condition{})))
		n.putDocument("a")
		require.Empty(t, w.takeCalls())
		n.putDocument("a")
		require.Equal(t, []call{{one, domain.ResourceUpdated, 2, 0, 0}}, w.takeCalls())
		n.requireCounters(id, watch.Counters{Triggered: 2, Delivered: 2})
	})
}

func TestW7_AnotherResourceNotifiesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.createWatch("a", one)
		for _, name := range []string{"A", "a.", "aa", "b"} {
			n.putDocument(name)
			n.putDocument(name)
			n.deleteDocument(name)
		}
		require.Empty(t, w.takeCalls())
		n.putDocument("a")
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
			n := w.startNode(true)
			defer n.stop()
			n.putDocument("a")
			id := n.createWatch("a", one)
			w.answer(one, status)
			n.putDocument("a")
			require.Len(w, w.takeCalls(), 1)
			n.requireCounters(id, watch.Counters{Triggered: 1})
			w.answer(one, http.StatusOK)
			sleep(time.Hour)
			require.Equal(w, []call{{one, domain.ResourceUpdated, 1, 1, time.Hour}}, w.takeCalls())
			n.requireCounters(id, watch.Counters{Triggered: 1, Delivered: 1})
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
			n := w.startNode(true)
			defer n.stop()
			n.putDocument("a")
			id := n.createWatch("a", one)
			w.answer(one, http.StatusInternalServerError)
			n.putDocument("a")
			sleep(24 * time.Hour)
			calls := w.takeCalls()
			require.Len(w, calls, len(tc.at))
			for i, c := range calls {
				require.Equal(w, call{one, domain.ResourceUpdated, 1, i, tc.at[i]}, c)
			}
			n.requireCounters(id, watch.Counters{Triggered: 1, Errored: 1})
			dead, err := w.cursors.DeadLetters(w.Context(), id.Cursor(w.owner), domain.EntryID{Number: -1}, 10)
			require.NoError(w, err)
			require.Len(w, dead, 1)
		})
	}
}

// storedCounts returns the number of outstanding deliveries and the counters that the store
// contains for a watch.
func (w *world) storedCounts(id domain.WatchID) (int64, domain.Counters) {
	standing, err := w.cursors.Standing(w.Context(), id.Cursor(w.owner))
	require.NoError(w, err)
	return int64(len(standing.Open) + standing.Retries), standing.Counters
}

func TestW13_TheCountersAddUpAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		n.putDocument("a")
		var ids []domain.WatchID
		for i, status := range []int{0, http.StatusInternalServerError, noAnswer, http.StatusInternalServerError} {
			callback := fmt.Sprint("https://example.com/", i)
			ids = append(ids, n.createWatch("a", callback))
			w.answer(callback, status)
		}
		var seen domain.Counters // sum of the counters that all reads returned
		for hour := range 12 {
			if hour < 5 {
				n.putDocument("a")
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
					outstanding, c := w.storedCounts(id)
					require.Equal(t, c.Triggered, c.Delivered+c.Errored+c.Cancelled+outstanding, "%+v", c)
					seen.Triggered, seen.Errored, seen.Cancelled = seen.Triggered+outstanding, seen.Errored+c.Errored, seen.Cancelled+c.Cancelled
				}
			}
		}
		require.NotZero(t, seen.Triggered)
		require.NotZero(t, seen.Errored)
		require.NotZero(t, seen.Cancelled)
		n.requireCounters(ids[0], watch.Counters{Triggered: 5, Delivered: 5})
		n.requireCounters(ids[1], watch.Counters{Triggered: 5, Errored: 5})
		n.requireCounters(ids[2], watch.Counters{Triggered: 5, Delivered: 5})
		_, c := w.storedCounts(ids[3])
		require.Equal(t, domain.Counters{Triggered: 3, Cancelled: 3, Attempts: c.Attempts}, c)
	})
}

// A dyingCursors simulates a node that dies before it stores the outcome of a call.
type dyingCursors struct{ repository.Cursors }

func (dyingCursors) Settle(ctx context.Context, _ domain.CursorID, _ repository.CursorVersion, _ domain.Settlement) (repository.CursorVersion, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestW14_AHubThatDiesAfterTheAnswer_CallsAgainAndCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startOn(dyingCursors{w.cursors}, nil, true)
		n.putDocument("a")
		id := n.createWatch("a", one)
		n.putDocument("a")
		require.Equal(t, []call{{one, domain.ResourceUpdated, 1, 0, 0}}, w.takeCalls())
		n.stop()
		n = w.startNode(true)
		defer n.stop()
		sleep(time.Minute)
		calls := w.takeCalls()
		require.Len(t, calls, 1)
		require.Equal(t, call{one, domain.ResourceUpdated, 1, 0, calls[0].after}, calls[0])
		n.requireCounters(id, watch.Counters{Triggered: 1, Delivered: 1})
	})
}

func TestW15_AHubThatWasDownMakesOneAttemptAndThenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		n.putDocument("a")
		id := n.createWatch("a", one)
		w.answer(one, http.StatusInternalServerError)
		n.putDocument("a")
		require.Len(t, w.takeCalls(), 1)
		n.stop()
		sleep(9 * time.Hour)
		n = w.startNode(true)
		defer n.stop()
		sleep(24 * time.Hour)
		calls := w.takeCalls()
		require.Len(t, calls, 4)
		for i, after := range []time.Duration{9 * time.Hour, 10 * time.Hour, 12 * time.Hour, 16 * time.Hour} {
			require.Equal(t, after, calls[i].after.Round(time.Minute), "attempt %d", i+2)
		}
		n.requireCounters(id, watch.Counters{Triggered: 1, Errored: 1})
	})
}

func TestW17_AListHasAnOffsetAndACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.startNode(true)
		defer n.stop()
		var ids []domain.WatchID
		for range 5 {
			ids = append(ids, n.createWatch("a", one))
			sleep(time.Millisecond)
		}
		all, err := n.List(t.Context(), w.owner, 2, 2)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, ids[2:4], []domain.WatchID{all[0].ID, all[1].ID})
	})
}
