package repositorytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A loadedCursor is a cursor that a node has loaded, and the version that it loaded.
type loadedCursor struct {
	f       *pushFixture
	owner   domain.Owner
	cursor  *domain.Cursor
	version repository.CursorVersion
}

var pushPolicy = domain.Policy{Attempts: 3, First: time.Minute, Max: time.Hour}

func (f *pushFixture) createCursor() {
	f.Helper()
	require.NoError(f, f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: f.stream}))
}

// loadCursor loads the cursor for a node.
func (f *pushFixture) loadCursor(incarnation string) *loadedCursor {
	f.Helper()
	o := &loadedCursor{f: f, owner: domain.Owner{Incarnation: incarnation, Limit: 8, Policy: pushPolicy}}
	o.reloadCursor()
	return o
}

// reloadCursor loads the cursor again, and retains the calls and results in memory.
func (o *loadedCursor) reloadCursor() {
	o.f.Helper()
	before := o.cursor
	var err error
	o.cursor, o.version, err = o.f.Cursors.Load(o.f.ctx, o.f.id, o.owner, o.f.readClock)
	require.NoError(o.f, err)
	if before != nil {
		o.cursor.TakeOverCalls(before)
	}
}

// takeEntries reads the next entries of the stream. The cursor takes as many of them as it can.
func (o *loadedCursor) takeEntries() {
	o.f.Helper()
	for _, e := range o.f.readAll(o.cursor.Position(0)) {
		if o.cursor.CanTake(0, o.f.readClock()) {
			o.cursor.Take(e.Position, true)
		}
	}
}

// callNext begins the call of the next delivery, and returns it.
func (o *loadedCursor) callNext() domain.Call {
	o.f.Helper()
	call, ok := o.cursor.Next(o.f.readClock())
	require.True(o.f, ok, "there is a delivery to call")
	o.cursor.Begin(call)
	return call
}

// noteAnswer records in memory that a receiver answered a call with a status.
func (o *loadedCursor) noteAnswer(call domain.Call, status int) {
	o.cursor.Settle(domain.Outcome{
		Entry: call.EntryID, Attempts: call.Attempts, Replay: call.Replay, Published: o.f.readClock(), Answer: domain.Answer{Began: o.f.readClock(), Took: time.Millisecond, Status: status},
	})
}

// storeSettlement stores all results that are not stored yet.
func (o *loadedCursor) storeSettlement() {
	o.f.Helper()
	require.NoError(o.f, o.trySettle())
}

func (o *loadedCursor) trySettle() error {
	version, err := o.f.Cursors.Settle(o.f.ctx, o.f.id, o.version, o.cursor.Settlement())
	if err != nil {
		o.cursor.Unstored()
		return err
	}
	o.cursor.Stored()
	o.version = version
	return nil
}

// deadLetters returns all dead letters.
func (f *pushFixture) deadLetters() []domain.Retry {
	f.Helper()
	dead, err := f.Cursors.DeadLetters(f.ctx, f.id, domain.EntryID{Number: -1}, 100)
	require.NoError(f, err)
	return dead
}

func (f *pushFixture) shardEntry() repository.ShardEntry {
	f.Helper()
	entries, _, err := f.Shards.Cursors(f.ctx, repository.ShardOf(f.id))
	require.NoError(f, err)
	for _, e := range entries {
		if e.Cursor == f.id {
			return e
		}
	}
	require.Fail(f, "the shard does not list the cursor")
	return repository.ShardEntry{}
}

var cursorRules = []pushRule{
	{"SettledResultsAreFoundByTheNextOwner", func(f *pushFixture) {
		f.appendMessages(Messages(3)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		first, second := a.callNext(), a.callNext()
		a.noteAnswer(first, 200)
		a.storeSettlement()
		_ = second // node a crashes before the second call has a result

		b := f.loadCursor("b")
		s := b.cursor.Standing()
		require.EqualValues(f, 3, s.Counters.Triggered)
		require.EqualValues(f, 1, s.Counters.Delivered)
		require.Len(f, s.Open, 2)
		require.EqualValues(f, 3, b.cursor.Position(0).Number)
		require.Len(f, s.Recent, 1)
		require.Equal(f, 200, s.Recent[0].Status)
		require.Equal(f, time.Millisecond, s.Recent[0].Took)
		require.Equal(f, f.stream, s.Stream)
		require.Equal(f, "b", s.By)
		require.NotNil(f, s.Caution, "a ended without a release")
	}},
	{"ACursorIsCreatedOnce", func(f *pushFixture) {
		f.createCursor()
		err := f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: f.stream})
		require.Equal(f, domain.Conflict, domain.KindOf(err))
	}},
	{"ACursorThatDoesNotExistIsNotFound", func(f *pushFixture) {
		_, _, err := f.Cursors.Load(f.ctx, f.id, domain.Owner{Incarnation: "a", Limit: 1, Policy: pushPolicy}, f.readClock)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		_, err = f.Cursors.Standing(f.ctx, f.id)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		_, err = f.Cursors.Settle(f.ctx, f.id, "1", domain.Settlement{Standing: domain.Standing{Stream: f.stream}})
		require.Contains(f, []domain.Kind{domain.NotFound, domain.Conflict}, domain.KindOf(err))
		_, err = f.Cursors.DeadLetters(f.ctx, f.id, domain.EntryID{Number: -1}, 1)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
	}},
	{"RetriesOfAPriorityBeginWithItsFirstEntry", func(f *pushFixture) {
		messages := Messages(3)
		for i := range messages {
			messages[i].Priority = 3 * i
		}
		f.appendMessages(messages...)
		f.createCursor()
		a := f.loadCursor("a")
		for i := range messages {
			a.cursor.Take(a.cursor.Position(3*i), true)
		}
		for range messages {
			a.noteAnswer(a.callNext(), 500)
			a.storeSettlement()
		}
		for after, want := range map[domain.EntryID]int{{Number: -1}: 3, {}: 2, {Priority: 3, Number: -1}: 2, {Priority: 3}: 1, {Priority: 6, Number: -1}: 1, {Priority: 6}: 0} {
			found, err := f.Cursors.Retries(f.ctx, f.id, after, 100)
			require.NoError(f, err)
			require.Len(f, found, want, "behind %v", after)
		}
	}},
	{"LoadingIsAFence", func(f *pushFixture) {
		f.appendMessages(Messages(2)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		call := a.callNext()
		b := f.loadCursor("b")
		a.noteAnswer(call, 200)
		require.Equal(f, domain.Conflict, domain.KindOf(a.trySettle()))
		b.storeSettlement()
		a.reloadCursor()
		require.Equal(f, domain.Conflict, domain.KindOf(b.trySettle()))
		require.EqualValues(f, 0, a.cursor.Position(0).Number)
		a.takeEntries()
		a.storeSettlement() // stores the retained result of the call, although the reloaded cursor has added the same entry again
		require.EqualValues(f, 1, f.loadCursor("c").cursor.Standing().Counters.Delivered)
	}},
	{"AFailedDeliveryIsARetryUntilItsAttemptsAreSpent", func(f *pushFixture) {
		f.appendMessages(Messages(2)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		a.noteAnswer(a.callNext(), 500)
		a.noteAnswer(a.callNext(), 200)
		a.storeSettlement()
		for attempt := 1; attempt < pushPolicy.Attempts; attempt++ {
			o := f.loadCursor("a")
			require.Equal(f, 1, o.cursor.Standing().Retries)
			_, ok := o.cursor.Next(f.readClock())
			require.False(f, ok, "it is not due")
			f.advanceClock(time.Hour)
			call := o.callNext()
			require.Equal(f, attempt, call.Attempts)
			o.noteAnswer(call, 503)
			o.storeSettlement()
		}
		s := f.loadCursor("a").cursor.Standing()
		require.Zero(f, s.Retries)
		require.Equal(f, domain.Counters{Triggered: 2, Delivered: 1, Errored: 1, Attempts: 4}, s.Counters)
		dead := f.deadLetters()
		require.Len(f, dead, 1)
		require.Len(f, dead[0].History, 3)
		require.Equal(f, []int{500, 503, 503}, []int{dead[0].History[0].Status, dead[0].History[1].Status, dead[0].History[2].Status})
		f.advanceClock(repository.DeadLetterRetention + time.Hour)
		require.Empty(f, f.deadLetters())
	}},
	{"ARetryThatSucceedsIsGone", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		a.noteAnswer(a.callNext(), 500)
		a.storeSettlement()
		f.advanceClock(2 * time.Minute)
		a.noteAnswer(a.callNext(), 204)
		a.storeSettlement()
		s := f.loadCursor("b").cursor.Standing()
		require.Zero(f, s.Outstanding())
		require.EqualValues(f, 1, s.Counters.Delivered)
		require.Empty(f, f.deadLetters())
	}},
	{"AShardListsACursorNoLaterThanItsRetriesAreDue", func(f *pushFixture) {
		f.appendMessages(Messages(2)...)
		f.createCursor()
		require.Equal(f, repository.ShardEntry{Cursor: f.id, Stream: f.stream}, f.shardEntry())
		a := f.loadCursor("a")
		a.takeEntries()
		a.noteAnswer(a.callNext(), 500)
		a.storeSettlement()
		due := f.shardEntry().Due
		require.WithinDuration(f, f.readClock().Add(time.Minute), due, time.Second)
		f.advanceClock(10 * time.Second)
		a.noteAnswer(a.callNext(), 500)
		a.storeSettlement()
		require.Equal(f, due, f.shardEntry().Due)
		f.advanceClock(-5 * time.Second)
		f.appendMessages(Messages(1)...)
		a.takeEntries()
		f.advanceClock(-time.Minute)
		a.noteAnswer(a.callNext(), 500) // the clock was set back, so this retry is due first
		a.storeSettlement()
		require.True(f, f.shardEntry().Due.Before(due))
	}},
	{"AMessageThatEndsNodesBecomesADeadLetter", func(f *pushFixture) {
		f.appendMessages(Messages(3)...)
		f.createCursor()
		for i := range 10 {
			o := f.loadCursor(string(rune('a' + i)))
			if len(f.deadLetters()) > 0 {
				require.Equal(f, domain.MaxClaims+1, i)
				return
			}
			o.takeEntries()
			call, ok := o.cursor.Next(f.readClock())
			require.True(f, ok)
			require.Zero(f, call.Number)
			require.Equal(f, i > 0, call.Claim)
			o.storeSettlement() // afterwards the node ends
		}
		require.Fail(f, "the poison is called for ever")
	}},
	{"APauseAndAReleaseAreKept", func(f *pushFixture) {
		f.appendMessages(Messages(2)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		a.noteAnswer(a.callNext(), 410)
		a.storeSettlement()
		a.cursor.Release()
		a.storeSettlement()
		b := f.loadCursor("b")
		s := b.cursor.Standing()
		require.Equal(f, domain.Paused, s.State)
		require.NotEmpty(f, s.Reason)
		require.Nil(f, s.Caution, "a released the cursor")
		f.advanceClock(time.Hour)
		_, ok := b.cursor.Next(f.readClock())
		require.False(f, ok)
		b.cursor.Resume()
		b.storeSettlement()
		_, ok = f.loadCursor("b").cursor.Next(f.readClock())
		require.True(f, ok, "the backlog was kept")
	}},
	{"ACancelledCursorCountsItsWaitingDeliveries", func(f *pushFixture) {
		f.appendMessages(Messages(5)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		a.noteAnswer(a.callNext(), 500)
		a.noteAnswer(a.callNext(), 500)
		a.storeSettlement()
		for a.cursor.Cancel(2) {
			a.storeSettlement()
		}
		a.storeSettlement()
		s := f.loadCursor("a").cursor.Standing()
		require.Equal(f, domain.Closed, s.State)
		require.EqualValues(f, 5, s.Counters.Cancelled)
		require.Zero(f, s.Outstanding())
	}},
}
