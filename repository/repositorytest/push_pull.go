package repositorytest

import (
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// requestPeek adds a request for a bundle that contains up to limit of the entries.
func (f *pushFixture) requestPeek(id string, limit int, entries ...domain.Position) {
	f.Helper()
	require.NoError(f, f.addReplay(0, domain.ReplayRequest{ID: id, Peek: &domain.PeekRequest{Limit: limit, Entries: entries}}))
}

func positionsOf(numbers ...int64) (all []domain.Position) {
	for _, n := range numbers {
		all = append(all, domain.Position{EntryID: domain.EntryID{Number: n}})
	}
	return all
}

func positionNumbers(positions []domain.Position) (all []int64) {
	for _, p := range positions {
		all = append(all, p.Number)
	}
	return all
}

var pullRules = []pushRule{
	{"RequestsOfAConsumerAreKept", func(f *pushFixture) {
		f.createCursor()
		f.requestPeek("a", 3, positionsOf(4, 7)...)
		require.NoError(f, f.addReplay(0, domain.ReplayRequest{ID: "b", Dequeue: "bundle"}))
		f.requestPeek("c", 1)
		all := f.readReplays()
		require.Len(f, all, 3)
		require.Equal(f, &domain.PeekRequest{Limit: 3, Entries: positionsOf(4, 7)}, all[0].Peek)
		require.Equal(f, "bundle", all[1].Dequeue)
		require.Equal(f, &domain.PeekRequest{Limit: 1}, all[2].Peek)
	}},
	{"ABundleHasRetriesAndNewDeliveries_AndNoOwnerCallsThem", func(f *pushFixture) {
		f.appendMessages(Messages(4)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		failed, called := a.callNext(), a.callNext()
		a.noteAnswer(failed, 500)
		a.storeSettlement()
		f.requestPeek("bundle", 10, positionsOf(0, 1, 2, 3)...)
		a.followReplays()
		a.storeSettlement()
		held := f.readStanding().Held
		require.Equal(f, "bundle", held.ID)
		require.Equal(f, []int64{failed.Number}, positionNumbers(held.Retries))
		require.Equal(f, []int64{2, 3}, positionNumbers(held.Taken), "one is called")
		a.noteAnswer(called, 200)
		a.storeSettlement()
		f.advanceClock(pushPolicy.Longest())
		for _, owner := range []string{"a", "b"} {
			o := f.loadCursor(owner)
			_, ok := o.cursor.Next(f.readClock())
			require.False(f, ok)
			require.Equal(f, 3, o.cursor.InFlight()+o.cursor.Standing().Held.Len())
			require.Equal(f, held, o.cursor.Standing().Held)
		}
	}},
	{"ABundleThatIsDequeuedIsDelivered", func(f *pushFixture) {
		f.appendMessages(Messages(3)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		a.noteAnswer(a.callNext(), 500)
		a.storeSettlement()
		f.requestPeek("bundle", 2, positionsOf(0, 1, 2)...)
		a.followReplays()
		a.storeSettlement()
		require.NoError(f, f.addReplay(0, domain.ReplayRequest{ID: "other", Dequeue: "another"}))
		b := f.loadCursor("b")
		b.followReplays()
		b.storeSettlement()
		require.NotNil(f, f.readStanding().Held, "it is not the one that was dequeued")
		require.NoError(f, f.addReplay(0, domain.ReplayRequest{ID: "dequeue", Dequeue: "bundle"}))
		b.followReplays()
		b.storeSettlement()
		s := f.readStanding()
		require.Nil(f, s.Held)
		require.True(f, s.HasDequeued("bundle"))
		require.False(f, s.HasDequeued("another"))
		require.Equal(f, domain.Counters{Triggered: 3, Delivered: 2, Attempts: 1}, s.Counters)
		require.Equal(f, 1, s.Outstanding())
		_, err := f.Cursors.Retry(f.ctx, f.id, domain.EntryID{})
		require.Equal(f, domain.NotFound, domain.KindOf(err), "its document is gone")
		require.Equal(f, s, f.readStanding())
	}},
	{"ABundleHasManyRetries", func(f *pushFixture) {
		f.appendMessages(Messages(domain.MaxHeld)...)
		f.appendMessages(Messages(domain.MaxHeld)...)
		f.createCursor()
		a := f.loadCursor("a")
		var all []int64
		for i := range int64(2 * domain.MaxHeld) {
			a.takeEntries()
			a.noteAnswer(a.callNext(), 500)
			a.storeSettlement()
			all = append(all, i)
		}
		require.Equal(f, len(all), f.readStanding().Retries)
		f.requestPeek("bundle", domain.MaxHeld, positionsOf(all...)...)
		a.followReplays()
		a.storeSettlement()
		require.NoError(f, f.addReplay(0, domain.ReplayRequest{ID: "dequeue", Dequeue: "bundle"}))
		a.followReplays()
		a.storeSettlement()
		s := f.loadCursor("b").cursor.Standing()
		require.Equal(f, domain.MaxHeld, s.Retries)
		require.EqualValues(f, domain.MaxHeld, s.Counters.Delivered)
	}},
}

// readStanding returns the stored standing of the cursor.
func (f *pushFixture) readStanding() domain.Standing {
	f.Helper()
	s, err := f.Cursors.Standing(f.ctx, f.id)
	require.NoError(f, err)
	return s
}
