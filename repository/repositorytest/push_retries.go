package repositorytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// failNext calls the next n deliveries, each of which fails.
func (o *loadedCursor) failNext(n int) {
	o.f.Helper()
	for range n {
		o.noteAnswer(o.callNext(), 500)
	}
	o.storeSettlement()
}

func numbersOf(retries []domain.Retry) []int64 {
	var numbers []int64
	for _, r := range retries {
		numbers = append(numbers, r.Number)
	}
	return numbers
}

var retryRules = []pushRule{
	{"RetriesAreListedByPagesWithoutDeadLetters", func(f *pushFixture) {
		f.appendMessages(Messages(2)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		for range pushPolicy.Attempts {
			a.failNext(2)
			f.advanceClock(3 * time.Hour)
		}
		f.appendMessages(Messages(5)...)
		a.takeEntries()
		a.failNext(5)
		standing := a.cursor.Standing()
		require.Equal(f, 5, standing.Retries)
		require.Len(f, f.deadLetters(), 2)
		all, err := f.Cursors.Retries(f.ctx, f.id, domain.EntryID{Number: -1}, 100)
		require.NoError(f, err)
		require.Len(f, all, standing.Retries)
		for _, r := range all {
			require.False(f, r.Dead)
			require.NotZero(f, r.Attempts)
			require.Len(f, r.History, r.Attempts)
			require.False(f, r.Due.IsZero())
			require.False(f, r.Published.IsZero())
		}
		var paged []domain.Retry
		for after := (domain.EntryID{Number: -1}); ; after = paged[len(paged)-1].EntryID {
			page, err := f.Cursors.Retries(f.ctx, f.id, after, 2)
			require.NoError(f, err)
			require.LessOrEqual(f, len(page), 2)
			if len(page) == 0 {
				break
			}
			paged = append(paged, page...)
		}
		require.Equal(f, numbersOf(all), numbersOf(paged))
		require.IsIncreasing(f, append([]int64{-1}, numbersOf(all)...))
	}},
	{"ARetryIsReadUntilItEnds", func(f *pushFixture) {
		f.appendMessages(Messages(2)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		first := domain.EntryID{}
		_, err := f.Cursors.Retry(f.ctx, f.id, first)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		a.failNext(2)
		r, err := f.Cursors.Retry(f.ctx, f.id, first)
		require.NoError(f, err)
		require.Equal(f, first, r.EntryID)
		require.Equal(f, 1, r.Attempts)
		require.Equal(f, 500, r.History[0].Status)
		require.WithinDuration(f, f.readClock().Add(time.Minute), r.Due, time.Second)

		f.advanceClock(time.Hour)
		call := a.callNext()
		a.noteAnswer(call, 200)
		for range pushPolicy.Attempts - 1 {
			a.failNext(1)
			f.advanceClock(time.Hour)
		}
		_, err = f.Cursors.Retry(f.ctx, f.id, call.EntryID)
		require.Equal(f, domain.NotFound, domain.KindOf(err), "it was delivered")
		other := domain.EntryID{Number: 1 - call.Number}
		r, err = f.Cursors.Retry(f.ctx, f.id, other)
		require.NoError(f, err)
		require.True(f, r.Dead)
		require.NotEmpty(f, r.Reason)
		require.Len(f, r.History, pushPolicy.Attempts)
		require.Equal(f, []domain.Retry{r}, f.deadLetters())
		f.advanceClock(repository.DeadLetterRetention)
		_, err = f.Cursors.Retry(f.ctx, f.id, other)
		require.Equal(f, domain.NotFound, domain.KindOf(err), "its retention has passed")
	}},
	{"ACursorThatDoesNotExistHasNoRetries", func(f *pushFixture) {
		_, err := f.Cursors.Retries(f.ctx, f.id, domain.EntryID{Number: -1}, 1)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		_, err = f.Cursors.Retry(f.ctx, f.id, domain.EntryID{})
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		f.createCursor()
		none, err := f.Cursors.Retries(f.ctx, f.id, domain.EntryID{Number: -1}, 1)
		require.NoError(f, err)
		require.Empty(f, none)
	}},
}
