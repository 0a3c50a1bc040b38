package repositorytest

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// NewWatchCursorID returns the id of the cursor of a watch that no other test uses, in a shard.
func NewWatchCursorID(shard int) domain.CursorID {
	for {
		var random [10]byte
		rand.Read(random[:])
		id := domain.NewWatchID(time.Now(), random).Cursor(NewActor())
		if repository.ShardOf(id) == shard {
			return id
		}
	}
}

const pagedShard = 11

// createWatch creates the cursor of a watch, which begins at the entry with the number at. It makes
// this cursor the cursor of f.
func (f *pushFixture) createWatch(at int64) {
	f.Helper()
	f.id = NewWatchCursorID(pagedShard)
	require.NoError(f, f.Cursors.Create(f.ctx, f.id, f.standingAt(at)))
}

func (f *pushFixture) standingAt(number int64) domain.Standing {
	return domain.Standing{Stream: f.stream, At: []domain.Position{{EntryID: domain.EntryID{Number: number}}}}
}

func (f *pushFixture) newPage(n int) repository.WatchPage {
	f.Helper()
	page, err := f.Shards.WatchPage(f.ctx, pagedShard, f.stream, n)
	require.NoError(f, err)
	require.NotEmpty(f, page.Version)
	return page
}

// requirePages requires that the shard has n pages of the stream, and no other page exists.
func (f *pushFixture) requirePages(n int) {
	f.Helper()
	_, watched, err := f.Shards.Cursors(f.ctx, pagedShard)
	require.NoError(f, err)
	found := 0
	for _, w := range watched {
		if w.Stream == f.stream {
			found = w.Pages
		}
	}
	require.Equal(f, n, found)
	_, err = f.Shards.WatchPage(f.ctx, pagedShard, f.stream, n)
	f.wantKind(domain.NotFound, err)
}

var watchPageRules = []pushRule{
	{"TheCursorOfAWatchIsInAPageAndHasNoEntry", func(f *pushFixture) {
		f.requirePages(0)
		f.createWatch(3)
		first := f.id
		f.createWatch(5)
		require.False(f, f.isListed())
		f.requirePages(1)
		page := f.newPage(0)
		require.Equal(f, []domain.CursorID{first, f.id}, page.Cursors)
		require.EqualValues(f, 3, page.Served)
		f.wantKind(domain.Conflict, f.Cursors.Create(f.ctx, f.id, f.standingAt(5)))
		require.Equal(f, page.Cursors, f.newPage(0).Cursors)
	}},
	{"APageThatIsFullIsFollowedByAnother", func(f *pushFixture) {
		for range repository.WatchPageSize {
			f.createWatch(0)
		}
		f.requirePages(1)
		f.createWatch(7)
		f.requirePages(2)
		require.Len(f, f.newPage(0).Cursors, repository.WatchPageSize)
		require.Equal(f, []domain.CursorID{f.id}, f.newPage(1).Cursors)
		require.EqualValues(f, 7, f.newPage(1).Served)
	}},
	{"APageIsServedUntilAWatchWithOlderEntriesIsAdded", func(f *pushFixture) {
		f.createWatch(1)
		page := f.newPage(0)
		for _, served := range []int64{4, 4, 2} { // Served never decreases
			require.NoError(f, f.Shards.MarkServed(f.ctx, pagedShard, f.stream, 0, page.Version, served))
			require.EqualValues(f, 4, f.newPage(0).Served)
		}
		page = f.newPage(0)
		f.createWatch(6)
		require.EqualValues(f, 4, f.newPage(0).Served)
		f.wantKind(domain.Conflict, f.Shards.MarkServed(f.ctx, pagedShard, f.stream, 0, page.Version, 9))
		require.EqualValues(f, 4, f.newPage(0).Served)
		f.createWatch(2)
		require.EqualValues(f, 2, f.newPage(0).Served)
	}},
	{"AWatchIsListedWhileSomethingIsOutstanding", func(f *pushFixture) {
		f.createWatch(0)
		a := f.loadCursor("a")
		for range 2 { // the cursor may be listed again
			f.appendMessages(Messages(1)...)
			a.takeEntries()
			a.noteAnswer(a.callNext(), 500)
			a.storeSettlement()
			require.Equal(f, f.readClock().Add(pushPolicy.First+time.Millisecond), f.shardEntry().Due)
			a.cursor.Unlist(0)
			a.storeSettlement()
			require.True(f, f.isListed(), "a retry is outstanding")
			f.advanceClock(time.Hour)
			a.noteAnswer(a.callNext(), 200)
			a.storeSettlement()
			require.True(f, f.isListed())
			a.cursor.Unlist(0)
			a.storeSettlement()
			require.False(f, f.isListed())
			require.False(f, a.cursor.IsListed())
		}
		require.Equal(f, []domain.CursorID{f.id}, f.newPage(0).Cursors)
	}},
	{"AnEntryWithAChangeThatTheOwnerHasNotFollowedIsKept", func(f *pushFixture) {
		w := f.newWatch(NewActor())
		require.NoError(f, f.Watches.CreateWatch(f.ctx, w))
		f.id = w.ID.Cursor(w.Owner)
		require.NoError(f, f.Cursors.Create(f.ctx, f.id, f.standingAt(0)))
		a := f.loadCursor("a")
		require.NoError(f, f.Watches.DeleteWatch(f.ctx, w.Owner, w.ID))
		noted := f.shardEntry().Changes
		require.NotZero(f, noted)
		a.cursor.Unlist(0)
		a.storeSettlement()
		require.Equal(f, noted, f.shardEntry().Changes)
		a.cursor.Unlist(noted)
		a.storeSettlement()
		require.False(f, f.isListed())
	}},
	{"AWatchIsListedBeforeACallThatMayTakeLong", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createWatch(0)
		a := f.loadCursor("a")
		a.takeEntries()
		a.callNext()
		a.cursor.List(f.readClock())
		a.storeSettlement()
		require.True(f, a.cursor.IsListed())
		require.Equal(f, f.readClock(), f.shardEntry().Due)
		require.Len(f, f.loadCursor("b").cursor.Standing().Open, 1)
	}},
	{"AnEarlierOwnerCannotUnlistAWatch", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createWatch(0)
		a := f.loadCursor("a")
		b := f.loadCursor("b")
		b.takeEntries()
		b.noteAnswer(b.callNext(), 500)
		b.storeSettlement()
		a.cursor.Unlist(0)
		f.wantKind(domain.Conflict, a.trySettle())
		require.True(f, f.isListed())
	}},
	{"ARetiredWatchLeavesItsPage", func(f *pushFixture) {
		f.createWatch(0)
		first := f.id
		f.createWatch(0)
		for i, id := range []domain.CursorID{first, f.id} {
			f.id = id
			a := f.loadCursor(fmt.Sprint(i))
			a.cursor.Cancel(1)
			a.storeSettlement()
			require.NoError(f, f.Cursors.Retire(f.ctx, id, a.version))
			f.requirePages(1 - i)
		}
		f.createWatch(0)
		require.Equal(f, []domain.CursorID{f.id}, f.newPage(0).Cursors)
	}},
}
