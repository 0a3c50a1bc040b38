package deliverytest

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// addWatches adds n watches whose cursors are in one shard. The pause between their first
// attempts is an hour.
func (w *World) addWatches(n, attempts int, answer func(context.Context, delivery.Call) domain.Answer) []*Receiver {
	w.Helper()
	owner, err := domain.ParseActorID("watcher")
	require.NoError(w, err)
	all := make([]*Receiver, 0, n)
	for len(all) < n {
		w.mu.Lock()
		w.watches++
		number := w.watches
		w.mu.Unlock()
		var random [10]byte
		binary.BigEndian.PutUint64(random[:], uint64(number)) //nolint:gosec // positive
		id := domain.NewWatchID(w.Clock.Now(), random).Cursor(owner)
		if repository.ShardOf(id) != 7 {
			continue
		}
		all = append(all, w.Add(&Receiver{ID: id, Policy: domain.WatchPolicy(time.Hour, attempts), Answer: answer}))
	}
	return all
}

// requireEach requires that each receiver was called once with each of n messages.
func (w *World) requireEach(all []*Receiver, n int) {
	w.Helper()
	for i, r := range all {
		require.Len(w, r.Calls(), n, "watch %d", i)
		require.Len(w, r.Taken(), n, "watch %d", i)
	}
}

// listedCursors returns the cursors for which shard 7 has entries.
func (w *World) listedCursors() []domain.CursorID {
	w.Helper()
	entries, _, err := w.Stores.Shards.Cursors(context.Background(), 7)
	require.NoError(w, err)
	ids := make([]domain.CursorID, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.Cursor)
	}
	return ids
}

func (w *World) watchPage(n int) repository.WatchPage {
	w.Helper()
	page, err := w.Stores.Shards.WatchPage(context.Background(), 7, w.Stream, n)
	require.NoError(w, err)
	return page
}

var watchRules = []deliveryRule{
	{"EachWatchOfEveryPageIsCalledOnce", func(w *World) {
		all := w.addWatches(repository.WatchPageSize+20, 5, nil)
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Second)
		w.requireEach(all, 1)
		w.Publish(nil, 2)
		<-time.After(31 * time.Second)
		w.requireEach(all, 3)
		require.Empty(w, w.listedCursors(), "nothing is outstanding")
		require.EqualValues(w, 3, w.watchPage(0).Served)
		require.EqualValues(w, 3, w.watchPage(1).Served)
		n.Stop()
		require.Equal(w, domain.Counters{Triggered: 3, Delivered: 3, Attempts: 3}, w.Standing(all[0]).Counters)
	}},
	{"AWatchIsNotLoadedWhileItsResourceDoesNotChange", func(w *World) {
		all := w.addWatches(100, 5, nil)
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Second)
		w.requireEach(all, 1)
		n.Stop()
		before := w.Loads()
		w.Start(delivery.Options{}).stopAfter(time.Hour)
		require.Equal(w, before, w.Loads())
	}},
	{"FewWatchesStayInMemory", func(w *World) {
		const resident, others = 1000, 300
		all := w.addWatches(resident+others, 5, nil)
		n := w.Start(delivery.Options{})
		synctest.Wait()
		for i := range 3 {
			before := w.Loads()
			w.Publish(n, 1)
			<-time.After(time.Second)
			w.requireEach(all, i+1)
			if i > 0 {
				require.Equal(w, others, w.Loads()-before, "those in memory are not loaded again")
			}
		}
		n.Stop()
	}},
	{"ACrashDuringTheVisitsLosesNoWatch", func(w *World) {
		for writes := 1; writes < 70; writes += 17 {
			w := w.anotherWorld()
			all := w.addWatches(40, 5, nil)
			a := w.Start(delivery.Options{Concurrency: 1})
			synctest.Wait()
			a.CutAfter(writes)
			w.Publish(a, 1)
			<-time.After(time.Second)
			a.Kill()
			b := w.Start(delivery.Options{})
			<-time.After(2 * time.Hour)
			b.Stop()
			for _, r := range all {
				require.Len(w, r.Taken(), 1)
				require.LessOrEqual(w, len(r.Calls()), 2)
				require.EqualValues(w, 1, w.Standing(r).Counters.Triggered)
			}
		}
	}},
	{"OpenDeliveriesAreFoundAfterTheDeathsOfTwoNodes", func(w *World) {
		var isBack atomic.Bool
		all := w.addWatches(20, 5, func(ctx context.Context, c delivery.Call) domain.Answer {
			if c.Entry.Position.Number > 0 || isBack.Load() {
				return domain.Answer{Status: 200}
			}
			return After(time.Hour, 200)(ctx, c)
		})
		for _, messages := range []int{2, 0} { // the second message is settled while the first one is open
			n := w.Start(delivery.Options{})
			synctest.Wait()
			w.Publish(n, messages)
			<-time.After(time.Second)
			n.Kill()
		}
		isBack.Store(true)
		n := w.Start(delivery.Options{})
		<-time.After(2 * time.Hour)
		n.Stop()
		for i, r := range all {
			require.Len(w, r.Taken(), 2, "watch %d", i)
		}
	}},
	{"AWatchThatFailsIsListedUntilItSucceeds", func(w *World) {
		all := w.addWatches(30, 5, nil)
		failing := all[3]
		var isBack atomic.Bool
		failing.Answer = func(context.Context, delivery.Call) domain.Answer {
			if isBack.Load() {
				return domain.Answer{Status: 200}
			}
			return domain.Answer{Status: 500}
		}
		a := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(a, 1)
		<-time.After(time.Minute)
		require.Equal(w, []domain.CursorID{failing.ID}, w.listedCursors())
		a.Kill()
		isBack.Store(true)
		b := w.Start(delivery.Options{})
		<-time.After(2 * time.Hour)
		require.Len(w, failing.Taken(), 1, "the next owner knows that it waits")
		require.Empty(w, w.listedCursors())
		w.Publish(b, 1)
		<-time.After(time.Minute)
		b.Stop()
		require.Len(w, failing.Taken(), 2)
		w.requireEach(slices.Delete(slices.Clone(all), 3, 4), 2)
	}},
	{"HangingWatchesDoNotDelayOtherWatches", func(w *World) {
		hanging := w.addWatches(600, 1, After(time.Hour, 200))
		others := w.addWatches(100, 1, nil)
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Minute) // every two seconds, half of the workers detect that their receivers hang
		w.requireEach(others, 1)
		require.EqualValues(w, 1, w.watchPage(0).Served)
		<-time.After(time.Hour)
		n.Stop()
		for _, r := range hanging {
			require.EqualValues(w, 1, w.Standing(r).Counters.Errored)
		}
	}},
	{"AWatchThatAnotherNodeHasAddedIsFound", func(w *World) {
		all := w.addWatches(2, 5, nil)
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Second)
		late := w.addWatches(1, 5, nil) // the new watch gets all messages, beginning with the first
		<-time.After(time.Minute)
		w.requireEach(append(all, late...), 1)
		w.Publish(n, 1)
		<-time.After(time.Second)
		w.requireEach(append(all, late...), 2)
		n.Stop()
	}},
	{"AWatchThatIsDeletedLeavesItsPage", func(w *World) {
		all := w.addWatches(3, 5, Status(500))
		n := w.Start(delivery.Options{})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Minute)
		require.Len(w, w.listedCursors(), 3)
		for _, r := range all {
			w.Remove(r)
			n.Changed(r.ID)
		}
		<-time.After(time.Minute)
		n.Stop()
		require.Empty(w, w.listedCursors())
		_, watched, err := w.Stores.Shards.Cursors(context.Background(), 7)
		require.NoError(w, err)
		require.Empty(w, watched)
		for _, r := range all {
			require.EqualValues(w, 1, w.Standing(r).Counters.Cancelled)
		}
	}},
	{"WatchesAreServedByTheOwnerOfTheirShard", func(w *World) {
		w.Shared = true
		all := w.addWatches(50, 5, nil)
		a, b := w.Start(delivery.Options{}), w.Start(delivery.Options{})
		<-time.After(time.Minute)
		var published sync.WaitGroup
		for range 10 {
			for _, n := range []*Node{a, b} {
				published.Go(func() { w.Publish(n, 1) })
			}
			published.Wait()
			<-time.After(time.Second)
		}
		w.requireEach(all, 20)
		a.Stop()
		<-time.After(time.Minute)
		w.Publish(b, 1)
		<-time.After(time.Second)
		w.requireEach(all, 21)
		b.Stop()
	}},
}
