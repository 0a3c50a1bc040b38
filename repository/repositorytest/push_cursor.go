package repositorytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An owned cursor is one in the memory of a node.
type owned struct {
	f       *pushFixture
	owner   domain.Owner
	cursor  *domain.Cursor
	version repository.CursorVersion
}

var pushPolicy = domain.Policy{Attempts: 3, First: time.Minute, Max: time.Hour}

func (f *pushFixture) creates() {
	f.Helper()
	require.NoError(f, f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: f.stream}))
}

// loads has a node load the cursor.
func (f *pushFixture) loads(incarnation string) *owned {
	f.Helper()
	o := &owned{f: f, owner: domain.Owner{Incarnation: incarnation, Limit: 8, Policy: pushPolicy}}
	o.loads()
	return o
}

// loads loads the cursor, and keeps the calls and results of the one that was loaded before.
func (o *owned) loads() {
	o.f.Helper()
	before := o.cursor
	var err error
	o.cursor, o.version, err = o.f.Cursors.Load(o.f.ctx, o.f.id, o.owner, o.f.clock)
	require.NoError(o.f, err)
	if before != nil {
		o.cursor.Adopt(before)
	}
}

// takes takes all entries of the stream that it may take.
func (o *owned) takes() {
	o.f.Helper()
	for _, e := range o.f.readAll(o.cursor.Position(0)) {
		if o.cursor.CanTake(0, o.f.clock()) {
			o.cursor.Take(e.Position, true)
		}
	}
}

// calls calls with the next delivery, and returns it.
func (o *owned) calls() domain.Call {
	o.f.Helper()
	call, ok := o.cursor.Next(o.f.clock())
	require.True(o.f, ok, "there is a delivery to call")
	o.cursor.Begin(call)
	return call
}

// answered notes the answer to a call.
func (o *owned) answered(call domain.Call, status int) {
	o.cursor.Settle(domain.Outcome{
		Entry: call.EntryID, Attempts: call.Attempts, Replay: call.Replay, Published: o.f.clock(), Answer: domain.Answer{Began: o.f.clock(), Took: time.Millisecond, Status: status},
	})
}

// settles stores what has gathered.
func (o *owned) settles() {
	o.f.Helper()
	require.NoError(o.f, o.trySettle())
}

func (o *owned) trySettle() error {
	version, err := o.f.Cursors.Settle(o.f.ctx, o.f.id, o.version, o.cursor.Settlement())
	if err != nil {
		o.cursor.Unstored()
		return err
	}
	o.cursor.Stored()
	o.version = version
	return nil
}

// dead returns all dead letters.
func (f *pushFixture) dead() []domain.Retry {
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
	{"WhatIsSettledIsFoundByTheNextOwner", func(f *pushFixture) {
		f.append(Messages(3)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		first, second := a.calls(), a.calls()
		a.answered(first, 200)
		a.settles()
		_ = second // a ends without its answer

		b := f.loads("b")
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
		f.creates()
		err := f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: f.stream})
		require.Equal(f, domain.Conflict, domain.KindOf(err))
	}},
	{"ACursorThatDoesNotExistIsNotFound", func(f *pushFixture) {
		_, _, err := f.Cursors.Load(f.ctx, f.id, domain.Owner{Incarnation: "a", Limit: 1, Policy: pushPolicy}, f.clock)
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
		f.append(messages...)
		f.creates()
		a := f.loads("a")
		for i := range messages {
			a.cursor.Take(a.cursor.Position(3*i), true)
		}
		for range messages {
			a.answered(a.calls(), 500)
			a.settles()
		}
		for after, want := range map[domain.EntryID]int{{Number: -1}: 3, {}: 2, {Priority: 3, Number: -1}: 2, {Priority: 3}: 1, {Priority: 6, Number: -1}: 1, {Priority: 6}: 0} {
			found, err := f.Cursors.Retries(f.ctx, f.id, after, 100)
			require.NoError(f, err)
			require.Len(f, found, want, "behind %v", after)
		}
	}},
	{"LoadingIsAFence", func(f *pushFixture) {
		f.append(Messages(2)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		call := a.calls()
		b := f.loads("b")
		a.answered(call, 200)
		require.Equal(f, domain.Conflict, domain.KindOf(a.trySettle()))
		b.settles()
		a.loads()
		require.Equal(f, domain.Conflict, domain.KindOf(b.trySettle()))
		require.EqualValues(f, 0, a.cursor.Position(0).Number)
		a.takes()
		a.settles() // the result is kept, and settled once its entry is taken again
		require.EqualValues(f, 1, f.loads("c").cursor.Standing().Counters.Delivered)
	}},
	{"AFailedDeliveryIsARetryUntilItsAttemptsAreSpent", func(f *pushFixture) {
		f.append(Messages(2)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		a.answered(a.calls(), 500)
		a.answered(a.calls(), 200)
		a.settles()
		for attempt := 1; attempt < pushPolicy.Attempts; attempt++ {
			o := f.loads("a")
			require.Equal(f, 1, o.cursor.Standing().Retries)
			_, ok := o.cursor.Next(f.clock())
			require.False(f, ok, "it is not due")
			f.passes(time.Hour)
			call := o.calls()
			require.Equal(f, attempt, call.Attempts)
			o.answered(call, 503)
			o.settles()
		}
		s := f.loads("a").cursor.Standing()
		require.Zero(f, s.Retries)
		require.Equal(f, domain.Counters{Triggered: 2, Delivered: 1, Errored: 1, Attempts: 4}, s.Counters)
		dead := f.dead()
		require.Len(f, dead, 1)
		require.Len(f, dead[0].History, 3)
		require.Equal(f, []int{500, 503, 503}, []int{dead[0].History[0].Status, dead[0].History[1].Status, dead[0].History[2].Status})
		f.passes(repository.DeadLetterRetention + time.Hour)
		require.Empty(f, f.dead())
	}},
	{"ARetryThatSucceedsIsGone", func(f *pushFixture) {
		f.append(Messages(1)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		a.answered(a.calls(), 500)
		a.settles()
		f.passes(2 * time.Minute)
		a.answered(a.calls(), 204)
		a.settles()
		s := f.loads("b").cursor.Standing()
		require.Zero(f, s.Outstanding())
		require.EqualValues(f, 1, s.Counters.Delivered)
		require.Empty(f, f.dead())
	}},
	{"AShardListsACursorNoLaterThanItsRetriesAreDue", func(f *pushFixture) {
		f.append(Messages(2)...)
		f.creates()
		require.Equal(f, repository.ShardEntry{Cursor: f.id, Stream: f.stream}, f.shardEntry())
		a := f.loads("a")
		a.takes()
		a.answered(a.calls(), 500)
		a.settles()
		due := f.shardEntry().Due
		require.WithinDuration(f, f.clock().Add(time.Minute), due, time.Second)
		f.passes(10 * time.Second)
		a.answered(a.calls(), 500)
		a.settles()
		require.Equal(f, due, f.shardEntry().Due)
		f.passes(-5 * time.Second)
		f.append(Messages(1)...)
		a.takes()
		f.passes(-time.Minute)
		a.answered(a.calls(), 500) // the clock goes back, so this one is due first
		a.settles()
		require.True(f, f.shardEntry().Due.Before(due))
	}},
	{"APoisonEndsFewNodesAndIsADeadLetter", func(f *pushFixture) {
		f.append(Messages(3)...)
		f.creates()
		for i := range 10 {
			o := f.loads(string(rune('a' + i)))
			if len(f.dead()) > 0 {
				require.Equal(f, domain.MaxClaims+1, i)
				return
			}
			o.takes()
			call, ok := o.cursor.Next(f.clock())
			require.True(f, ok)
			require.Zero(f, call.Number)
			require.Equal(f, i > 0, call.Claim)
			o.settles() // and the node ends
		}
		require.Fail(f, "the poison is called for ever")
	}},
	{"APauseAndAReleaseAreKept", func(f *pushFixture) {
		f.append(Messages(2)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		a.answered(a.calls(), 410)
		a.settles()
		a.cursor.Release()
		a.settles()
		b := f.loads("b")
		s := b.cursor.Standing()
		require.Equal(f, domain.Paused, s.State)
		require.NotEmpty(f, s.Reason)
		require.Nil(f, s.Caution, "a released the cursor")
		f.passes(time.Hour)
		_, ok := b.cursor.Next(f.clock())
		require.False(f, ok)
		b.cursor.Resume()
		b.settles()
		_, ok = f.loads("b").cursor.Next(f.clock())
		require.True(f, ok, "the backlog was kept")
	}},
	{"ACursorThatIsCancelledCountsWhatWaits", func(f *pushFixture) {
		f.append(Messages(5)...)
		f.creates()
		a := f.loads("a")
		a.takes()
		a.answered(a.calls(), 500)
		a.answered(a.calls(), 500)
		a.settles()
		for a.cursor.Cancel(2) {
			a.settles()
		}
		a.settles()
		s := f.loads("a").cursor.Standing()
		require.Equal(f, domain.Closed, s.State)
		require.EqualValues(f, 5, s.Counters.Cancelled)
		require.Zero(f, s.Outstanding())
	}},
}
