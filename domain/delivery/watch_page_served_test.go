package delivery_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// oldEnds is a store of streams whose End is stale.
type oldEnds struct {
	repository.Streams
	missing *atomic.Int64
}

func (s oldEnds) End(ctx context.Context, stream domain.StreamName) (repository.StreamEnd, error) {
	end, err := s.Streams.End(ctx, stream)
	for i := range end.Positions {
		end.Positions[i].Number -= s.missing.Load()
	}
	return end, err
}

// A page is marked as served up to an entry. Then a node whose view of the stream ends before this
// entry serves a watch of the page.
func TestAWatchThatHasRecovered_GetsTheEntriesUpToTheMarkOfItsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var missing atomic.Int64
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			s := openMemory(t, clock)
			s.Streams = oldEnds{s.Streams, &missing}
			return s
		})
		var isUp atomic.Bool
		r := w.Add(&deliverytest.Receiver{
			ID: newWatchCursor(t, w), Policy: domain.WatchPolicy(time.Hour, 5), Concurrency: 1,
			Answer: func(ctx context.Context, _ delivery.Call) domain.Answer {
				if !isUp.Load() {
					<-ctx.Done()
					return domain.Answer{Error: ctx.Err().Error()}
				}
				return domain.Answer{Status: 200}
			},
		})
		n := w.Start(delivery.Options{Marked: 1})
		synctest.Wait()
		for range 2 { // the second entry waits for the call with the first
			w.Publish(n, 1)
			<-time.After(10 * time.Second)
		}
		n.Stop()
		page, err := w.Stores.Shards.WatchPage(t.Context(), repository.ShardOf(r.ID), w.Stream, 0)
		require.NoError(t, err)
		require.EqualValues(t, 2, page.Served)
		before, err := w.Stores.Cursors.Standing(t.Context(), r.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, before.Position(0).Number)
		missing.Store(1)
		isUp.Store(true)
		n = w.Start(delivery.Options{Marked: 1})
		<-time.After(10 * time.Minute) // long enough for the engine to remove the watch from memory
		missing.Store(0)
		<-time.After(time.Hour)
		n.Stop()
		require.Len(t, r.Taken(), 2)
	})
}

// lateCursors hides cursors while isMissing is true.
type lateCursors struct {
	repository.Cursors
	isMissing *atomic.Bool
}

func (s lateCursors) Load(ctx context.Context, id domain.CursorID, owner domain.Owner, clock func() time.Time) (*domain.Cursor, repository.CursorVersion, error) {
	if s.isMissing.Load() {
		return nil, "", domain.Errorf(domain.NotFound, "there is no such cursor")
	}
	return s.Cursors.Load(ctx, id, owner, clock)
}

// P7: a node ends after it has created a cursor and before it signals this.
func TestAWatchWithALateCursor_GetsTheEntriesOfTheVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var isMissing atomic.Bool
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			s := openMemory(t, clock)
			s.Cursors = lateCursors{s.Cursors, &isMissing}
			return s
		})
		isMissing.Store(true)
		r := w.Add(&deliverytest.Receiver{ID: newWatchCursor(t, w), Policy: domain.WatchPolicy(time.Hour, 5)})
		n := w.Start(delivery.Options{Marked: 1})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(time.Minute)
		isMissing.Store(false)
		<-time.After(time.Minute)
		require.Len(t, r.Taken(), 1)
		page, err := w.Stores.Shards.WatchPage(t.Context(), repository.ShardOf(r.ID), w.Stream, 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, page.Served)
		n.Stop()
	})
}

// P7: a node remembers that the shard lists a cursor, but another node has since loaded, served
// and unlisted it.
func TestAVisit_ListsAWatchAgainThatAnotherNodeUnlisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores { return openMemory(t, clock) })
		r := w.Add(&deliverytest.Receiver{
			ID: newWatchCursor(t, w), Policy: domain.WatchPolicy(time.Hour, 5), Concurrency: 1,
			Answer: func(ctx context.Context, _ delivery.Call) domain.Answer { // the second entry is not taken during the call
				<-ctx.Done()
				return domain.Answer{Error: ctx.Err().Error()}
			},
		})
		n := w.Start(delivery.Options{Marked: 1})
		synctest.Wait()
		w.Publish(n, 1)
		<-time.After(10 * time.Second)
		cursors, owner := w.Stores.Cursors, domain.Owner{Incarnation: "other", Limit: 1, Policy: r.Policy}
		c, version, err := cursors.Load(t.Context(), r.ID, owner, w.Clock.Now)
		require.NoError(t, err)
		require.True(t, c.IsListed())
		due := w.Clock.Now().Add(2 * time.Hour)
		call, isDue := c.Next(due)
		require.True(t, isDue)
		c.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: due, Answer: domain.Answer{Status: 200, Began: due}})
		c.Unlist(0)
		_, err = cursors.Settle(t.Context(), r.ID, version, c.Settlement())
		require.NoError(t, err)
		entries, _, err := w.Stores.Shards.Cursors(t.Context(), repository.ShardOf(r.ID))
		require.NoError(t, err)
		require.Empty(t, entries)

		w.Publish(n, 1)
		synctest.Wait()
		page, err := w.Stores.Shards.WatchPage(t.Context(), repository.ShardOf(r.ID), w.Stream, 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, page.Served, "the entry of the shard is gone")
		n.Stop()
		n = w.Start(delivery.Options{Marked: 1})
		defer n.Stop()
		<-time.After(10 * time.Minute)
		require.True(t, slices.ContainsFunc(r.Calls(), func(c deliverytest.RecordedCall) bool { return c.Entry.Number == 1 }))
	})
}

func newWatchCursor(t *testing.T, w *deliverytest.World) domain.CursorID {
	owner, err := domain.ParseActorID("watcher")
	require.NoError(t, err)
	return domain.NewWatchID(w.Clock.Now(), [10]byte{7: 1}).Cursor(owner)
}
