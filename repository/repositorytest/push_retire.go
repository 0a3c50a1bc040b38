package repositorytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// isListed reports whether the cursor is listed in its shard.
func (f *pushFixture) isListed() bool {
	f.Helper()
	entries, _, err := f.Shards.Cursors(f.ctx, repository.ShardOf(f.id))
	require.NoError(f, err)
	for _, e := range entries {
		if e.Cursor == f.id {
			return true
		}
	}
	return false
}

// closeCursor adds a dead letter to the cursor, cancels all other deliveries, and returns the closed
// cursor.
func (f *pushFixture) closeCursor() *loadedCursor {
	f.Helper()
	f.appendMessages(Messages(3)...)
	f.createCursor()
	a := f.loadCursor("a")
	a.takeEntries()
	call := a.callNext()
	for attempt := range pushPolicy.Attempts {
		if attempt > 0 {
			f.advanceClock(time.Hour)
			a.callNext()
		}
		call.Attempts = attempt
		a.noteAnswer(call, 500)
		a.storeSettlement()
	}
	require.Len(f, f.deadLetters(), 1)
	a.cursor.Cancel(100)
	a.storeSettlement()
	return a
}

var retireRules = []pushRule{
	{"ARetiredCursorIsNeitherListedNorLoaded", func(f *pushFixture) {
		a := f.closeCursor()
		require.True(f, f.isListed())
		for range 2 { // the call may be repeated
			require.NoError(f, f.Cursors.Retire(f.ctx, f.id, a.version))
			require.False(f, f.isListed())
		}
		_, _, err := f.Cursors.Load(f.ctx, f.id, a.owner, f.readClock)
		f.wantKind(domain.NotFound, err)
		f.wantKind(domain.Conflict, f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: f.stream}))
		_, _, err = f.Cursors.Load(f.ctx, f.id, a.owner, f.readClock)
		f.wantKind(domain.NotFound, err)
		require.False(f, f.isListed(), "a creation that was refused lists nothing for good")
		a.cursor.Release()
		f.wantKind(domain.Conflict, a.trySettle())
	}},
	{"ARetiredCursorIsReadUntilItsDeadLettersAreGone", func(f *pushFixture) {
		a := f.closeCursor()
		require.NoError(f, f.Cursors.Retire(f.ctx, f.id, a.version))
		f.advanceClock(repository.DeadLetterRetention - time.Hour)
		require.Len(f, f.deadLetters(), 1)
		s, err := f.Cursors.Standing(f.ctx, f.id)
		require.NoError(f, err)
		require.Equal(f, domain.Counters{Triggered: 3, Errored: 1, Cancelled: 2, Attempts: 3}, s.Counters)
		f.advanceClock(3 * 24 * time.Hour)
		_, err = f.Cursors.Standing(f.ctx, f.id)
		f.wantKind(domain.NotFound, err)
		f.wantKind(domain.NotFound, f.Cursors.Retire(f.ctx, f.id, a.version))
		a.cursor.Release()
		require.Contains(f, []domain.Kind{domain.NotFound, domain.Conflict}, domain.KindOf(a.trySettle()), "an old read revives nothing")
		_, err = f.Cursors.Standing(f.ctx, f.id)
		f.wantKind(domain.NotFound, err)
		f.createCursor()
		require.True(f, f.isListed())
		require.Zero(f, f.loadCursor("b").cursor.Standing().Counters)
		require.Empty(f, f.deadLetters())
	}},
	{"OnlyAClosedAndEmptyCursorIsRetired", func(f *pushFixture) {
		f.appendMessages(Messages(5)...)
		f.createCursor()
		a := f.loadCursor("a")
		f.wantKind(domain.Conflict, f.Cursors.Retire(f.ctx, f.id, a.version))
		a.takeEntries()
		a.cursor.Cancel(2)
		a.storeSettlement()
		f.wantKind(domain.Conflict, f.Cursors.Retire(f.ctx, f.id, a.version))
		a.cursor.Cancel(100)
		a.storeSettlement()
		b := f.loadCursor("b")
		f.wantKind(domain.Conflict, f.Cursors.Retire(f.ctx, f.id, a.version))
		require.True(f, f.isListed())
		require.NoError(f, f.Cursors.Retire(f.ctx, f.id, b.version))
	}},
}
