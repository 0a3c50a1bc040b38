package repositorytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// isListed reports whether the shard of the cursor lists it.
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

// closes gives the cursor a dead letter, cancels the rest, and returns it closed.
func (f *pushFixture) closes() *owned {
	f.Helper()
	f.append(Messages(3)...)
	f.creates()
	a := f.loads("a")
	a.takes()
	call := a.calls()
	for attempt := range pushPolicy.Attempts {
		if attempt > 0 {
			f.passes(time.Hour)
			a.calls()
		}
		call.Attempts = attempt
		a.answered(call, 500)
		a.settles()
	}
	require.Len(f, f.dead(), 1)
	a.cursor.Cancel(100)
	a.settles()
	return a
}

var retireRules = []pushRule{
	{"ARetiredCursorIsListedAndLoadedNoMore", func(f *pushFixture) {
		a := f.closes()
		require.True(f, f.isListed())
		for range 2 { // the call may be repeated
			require.NoError(f, f.Cursors.Retire(f.ctx, f.id, a.version))
			require.False(f, f.isListed())
		}
		_, _, err := f.Cursors.Load(f.ctx, f.id, a.owner, f.clock)
		f.fails(domain.NotFound, err)
		f.fails(domain.Conflict, f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: f.stream}))
		_, _, err = f.Cursors.Load(f.ctx, f.id, a.owner, f.clock)
		f.fails(domain.NotFound, err)
		require.False(f, f.isListed(), "a creation that was refused lists nothing for good")
		a.cursor.Release()
		f.fails(domain.Conflict, a.trySettle())
	}},
	{"ARetiredCursorIsReadUntilItsDeadLettersAreGone", func(f *pushFixture) {
		a := f.closes()
		require.NoError(f, f.Cursors.Retire(f.ctx, f.id, a.version))
		f.passes(repository.DeadLetterRetention - time.Hour)
		require.Len(f, f.dead(), 1)
		s, err := f.Cursors.Standing(f.ctx, f.id)
		require.NoError(f, err)
		require.Equal(f, domain.Counters{Triggered: 3, Errored: 1, Cancelled: 2, Attempts: 3}, s.Counters)
		f.passes(3 * 24 * time.Hour)
		_, err = f.Cursors.Standing(f.ctx, f.id)
		f.fails(domain.NotFound, err)
		f.fails(domain.NotFound, f.Cursors.Retire(f.ctx, f.id, a.version))
		a.cursor.Release()
		require.Contains(f, []domain.Kind{domain.NotFound, domain.Conflict}, domain.KindOf(a.trySettle()), "an old read revives nothing")
		_, err = f.Cursors.Standing(f.ctx, f.id)
		f.fails(domain.NotFound, err)
		f.creates()
		require.True(f, f.isListed())
		require.Zero(f, f.loads("b").cursor.Standing().Counters)
		require.Empty(f, f.dead())
	}},
	{"OnlyAClosedAndEmptyCursorIsRetired", func(f *pushFixture) {
		f.append(Messages(5)...)
		f.creates()
		a := f.loads("a")
		f.fails(domain.Conflict, f.Cursors.Retire(f.ctx, f.id, a.version))
		a.takes()
		a.cursor.Cancel(2)
		a.settles()
		f.fails(domain.Conflict, f.Cursors.Retire(f.ctx, f.id, a.version))
		a.cursor.Cancel(100)
		a.settles()
		b := f.loads("b")
		f.fails(domain.Conflict, f.Cursors.Retire(f.ctx, f.id, a.version))
		require.True(f, f.isListed())
		require.NoError(f, f.Cursors.Retire(f.ctx, f.id, b.version))
	}},
}
