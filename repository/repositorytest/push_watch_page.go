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

// createsWatch creates the cursor of a watch, at a number of the stream. The fixture is about it then.
func (f *pushFixture) createsWatch(at int64) {
	f.Helper()
	f.id = NewWatchCursorID(pagedShard)
	require.NoError(f, f.Cursors.Create(f.ctx, f.id, f.standingAt(at)))
}

func (f *pushFixture) standingAt(number int64) domain.Standing {
	return domain.Standing{Stream: f.stream, At: []domain.Position{{EntryID: domain.EntryID{Number: number}}}}
}

func (f *pushFixture) page(n int) repository.WatchPage {
	f.Helper()
	page, err := f.Shards.WatchPage(f.ctx, pagedShard, f.stream, n)
	require.NoError(f, err)
	require.NotEmpty(f, page.Version)
	return page
}

// hasPages demands how many pages the shard says that the stream has, and that there is no other one.
func (f *pushFixture) hasPages(n int) {
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
	f.fails(domain.NotFound, err)
}

var watchPageRules = []pushRule{
	{"TheCursorOfAWatchIsInAPageAndHasNoEntry", func(f *pushFixture) {
		f.hasPages(0)
		f.createsWatch(3)
		first := f.id
		f.createsWatch(5)
		require.False(f, f.isListed())
		f.hasPages(1)
		page := f.page(0)
		require.Equal(f, []domain.CursorID{first, f.id}, page.Cursors)
		require.EqualValues(f, 3, page.Served)
		f.fails(domain.Conflict, f.Cursors.Create(f.ctx, f.id, f.standingAt(5)))
		require.Equal(f, page.Cursors, f.page(0).Cursors)
	}},
	{"APageThatIsFullIsFollowedByAnother", func(f *pushFixture) {
		for range repository.WatchPageSize {
			f.createsWatch(0)
		}
		f.hasPages(1)
		f.createsWatch(7)
		f.hasPages(2)
		require.Len(f, f.page(0).Cursors, repository.WatchPageSize)
		require.Equal(f, []domain.CursorID{f.id}, f.page(1).Cursors)
		require.EqualValues(f, 7, f.page(1).Served)
	}},
	{"APageIsServedUntilAWatchIsAddedThatIsBehind", func(f *pushFixture) {
		f.createsWatch(1)
		page := f.page(0)
		for _, served := range []int64{4, 4, 2} { // it only rises
			require.NoError(f, f.Shards.MarkServed(f.ctx, pagedShard, f.stream, 0, page.Version, served))
			require.EqualValues(f, 4, f.page(0).Served)
		}
		page = f.page(0)
		f.createsWatch(6)
		require.EqualValues(f, 4, f.page(0).Served)
		f.fails(domain.Conflict, f.Shards.MarkServed(f.ctx, pagedShard, f.stream, 0, page.Version, 9))
		require.EqualValues(f, 4, f.page(0).Served)
		f.createsWatch(2)
		require.EqualValues(f, 2, f.page(0).Served)
	}},
	{"AWatchIsListedWhileSomethingIsOutstanding", func(f *pushFixture) {
		f.createsWatch(0)
		a := f.loads("a")
		for range 2 { // it may be listed again
			f.append(Messages(1)...)
			a.takes()
			a.answered(a.calls(), 500)
			a.settles()
			require.Equal(f, f.clock().Add(pushPolicy.First+time.Millisecond), f.shardEntry().Due)
			a.cursor.Unlist()
			a.settles()
			require.True(f, f.isListed(), "a retry is outstanding")
			f.passes(time.Hour)
			a.answered(a.calls(), 200)
			a.settles()
			require.True(f, f.isListed())
			a.cursor.Unlist()
			a.settles()
			require.False(f, f.isListed())
			require.False(f, a.cursor.IsListed())
		}
		require.Equal(f, []domain.CursorID{f.id}, f.page(0).Cursors)
	}},
	{"AWatchIsListedBeforeACallThatMayTakeLong", func(f *pushFixture) {
		f.append(Messages(1)...)
		f.createsWatch(0)
		a := f.loads("a")
		a.takes()
		a.calls()
		a.cursor.List(f.clock())
		a.settles()
		require.True(f, a.cursor.IsListed())
		require.Equal(f, f.clock(), f.shardEntry().Due)
		require.Len(f, f.loads("b").cursor.Standing().Open, 1)
	}},
	{"AnOwnerBeforeCannotUnlistAWatch", func(f *pushFixture) {
		f.append(Messages(1)...)
		f.createsWatch(0)
		a := f.loads("a")
		b := f.loads("b")
		b.takes()
		b.answered(b.calls(), 500)
		b.settles()
		a.cursor.Unlist()
		f.fails(domain.Conflict, a.trySettle())
		require.True(f, f.isListed())
	}},
	{"ARetiredWatchLeavesItsPage", func(f *pushFixture) {
		f.createsWatch(0)
		first := f.id
		f.createsWatch(0)
		for i, id := range []domain.CursorID{first, f.id} {
			f.id = id
			a := f.loads(fmt.Sprint(i))
			a.cursor.Cancel(1)
			a.settles()
			require.NoError(f, f.Cursors.Retire(f.ctx, id, a.version))
			f.hasPages(1 - i)
		}
		f.createsWatch(0)
		require.Equal(f, []domain.CursorID{f.id}, f.page(0).Cursors)
	}},
}
