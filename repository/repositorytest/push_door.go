package repositorytest

import (
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// peeks adds a request for a bundle of entries.
func (f *pushFixture) peeks(id string, limit int, entries ...domain.Position) {
	f.Helper()
	require.NoError(f, f.adds(0, domain.ReplayRequest{ID: id, Peek: &domain.PeekRequest{Limit: limit, Entries: entries}}))
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

var doorRules = []pushRule{
	{"RequestsOfADoorAreKept", func(f *pushFixture) {
		f.creates()
		f.peeks("a", 3, positionsOf(4, 7)...)
		require.NoError(f, f.adds(0, domain.ReplayRequest{ID: "b", Dequeue: "bundle"}))
		f.peeks("c", 1)
		all := f.replays()
		require.Len(f, all, 3)
		require.Equal(f, &domain.PeekRequest{Limit: 3, Entries: positionsOf(4, 7)}, all[0].Peek)
		require.Equal(f, "bundle", all[1].Dequeue)
		require.Equal(f, &domain.PeekRequest{Limit: 1}, all[2].Peek)
	}},
	{"ABundleHasRetriesAndWhatWasNotTakenAndIsCalledByNoOwner", func(f *pushFixture) {
		f.append(Messages(4)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		failed, called := a.calls(), a.calls()
		a.answered(failed, 500)
		a.settles()
		f.peeks("bundle", 10, positionsOf(0, 1, 2, 3)...)
		a.follows()
		a.settles()
		held := f.standing().Held
		require.Equal(f, "bundle", held.ID)
		require.Equal(f, []int64{failed.Number}, positionNumbers(held.Retries))
		require.Equal(f, []int64{2, 3}, positionNumbers(held.Taken), "one is called")
		a.answered(called, 200)
		a.settles()
		f.passes(pushPolicy.Longest())
		for _, owner := range []string{"a", "b"} {
			o := f.loads(owner)
			_, ok := o.cursor.Next(f.clock())
			require.False(f, ok)
			require.Equal(f, 3, o.cursor.InFlight()+o.cursor.Standing().Held.Len())
			require.Equal(f, held, o.cursor.Standing().Held)
		}
	}},
	{"ABundleThatIsDequeuedIsDelivered", func(f *pushFixture) {
		f.append(Messages(3)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		a.answered(a.calls(), 500)
		a.settles()
		f.peeks("bundle", 2, positionsOf(0, 1, 2)...)
		a.follows()
		a.settles()
		require.NoError(f, f.adds(0, domain.ReplayRequest{ID: "other", Dequeue: "another"}))
		b := f.loads("b")
		b.follows()
		b.settles()
		require.NotNil(f, f.standing().Held, "it is not the one that was dequeued")
		require.NoError(f, f.adds(0, domain.ReplayRequest{ID: "dequeue", Dequeue: "bundle"}))
		b.follows()
		b.settles()
		s := f.standing()
		require.Nil(f, s.Held)
		require.True(f, s.HasDequeued("bundle"))
		require.False(f, s.HasDequeued("another"))
		require.Equal(f, domain.Counters{Triggered: 3, Delivered: 2, Attempts: 1}, s.Counters)
		require.Equal(f, 1, s.Outstanding())
		_, err := f.Cursors.Retry(f.ctx, f.id, domain.EntryID{})
		require.Equal(f, domain.NotFound, domain.KindOf(err), "its document is gone")
		require.Equal(f, s, f.standing())
	}},
	{"ABundleHasManyRetries", func(f *pushFixture) {
		f.append(Messages(domain.MaxHeld)...)
		f.append(Messages(domain.MaxHeld)...)
		f.creates()
		a := f.loads("a")
		var all []int64
		for i := range int64(2 * domain.MaxHeld) {
			a.takes()
			a.answered(a.calls(), 500)
			a.settles()
			all = append(all, i)
		}
		require.Equal(f, len(all), f.standing().Retries)
		f.peeks("bundle", domain.MaxHeld, positionsOf(all...)...)
		a.follows()
		a.settles()
		require.NoError(f, f.adds(0, domain.ReplayRequest{ID: "dequeue", Dequeue: "bundle"}))
		a.follows()
		a.settles()
		s := f.loads("b").cursor.Standing()
		require.Equal(f, domain.MaxHeld, s.Retries)
		require.EqualValues(f, domain.MaxHeld, s.Counters.Delivered)
	}},
}

// standing returns what is stored of the cursor.
func (f *pushFixture) standing() domain.Standing {
	f.Helper()
	s, err := f.Cursors.Standing(f.ctx, f.id)
	require.NoError(f, err)
	return s
}
