package repositorytest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// requestReplay adds a request for one delivery.
func (f *pushFixture) requestReplay(id string, followed int, e domain.EntryID) error {
	return f.addReplay(followed, domain.ReplayRequest{
		ID: id, Delivery: &domain.ReplayDelivery{Position: domain.Position{EntryID: e}, Published: f.readClock()},
	})
}

func (f *pushFixture) addReplay(followed int, r domain.ReplayRequest) error {
	number, err := f.Shards.AddReplay(f.ctx, f.id, followed, r)
	if err == nil {
		require.Equal(f, f.readReplays().Find(r.ID).Number, number)
	}
	return err
}

func (f *pushFixture) readReplays() domain.ReplayRequests {
	f.Helper()
	all, err := f.Shards.Replays(f.ctx, f.id)
	require.NoError(f, err)
	return all
}

// followReplays applies all requests to the cursor, with the stored dead letters.
func (o *loadedCursor) followReplays() {
	o.f.Helper()
	for _, r := range o.f.readReplays() {
		var dead *domain.Retry
		if r.Delivery != nil {
			if found, err := o.f.Cursors.Retry(o.f.ctx, o.f.id, r.Delivery.EntryID); err == nil {
				dead = &found
			}
		}
		require.True(o.f, o.cursor.ApplyReplayRequest(&r, dead, o.f.readClock()))
	}
}

// makeDeadLetter fails all attempts of the next delivery, which then is a dead letter.
func (o *loadedCursor) makeDeadLetter() domain.EntryID {
	o.f.Helper()
	var last domain.EntryID
	for range pushPolicy.Attempts {
		call := o.callNext()
		last = call.EntryID
		o.noteAnswer(call, 500)
		o.storeSettlement()
		o.f.advanceClock(time.Hour)
	}
	return last
}

var replayRules = []pushRule{
	{"ADeadLetterThatIsReplayedIsARetryWithItsHistory", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		e := a.makeDeadLetter()
		require.Len(f, f.deadLetters(), 1)
		require.NoError(f, f.requestReplay("r1", 0, e))
		a.followReplays()
		_, ok := a.cursor.Next(f.readClock())
		require.False(f, ok, "it is not called before it is stored")
		a.storeSettlement()
		require.Empty(f, f.deadLetters())
		r, err := f.Cursors.Retry(f.ctx, f.id, e)
		require.NoError(f, err)
		require.False(f, r.Dead)
		require.Zero(f, r.Attempts)
		require.Len(f, r.History, pushPolicy.Attempts, "its history is kept")

		a.reloadCursor()
		call := a.callNext()
		require.Equal(f, e, call.EntryID)
		a.noteAnswer(call, 200)
		a.storeSettlement()
		s := f.loadCursor("b").cursor.Standing()
		require.Equal(f, domain.Counters{Triggered: 2, Delivered: 1, Errored: 1, Attempts: 4}, s.Counters)
		require.Equal(f, 1, s.Followed)
		require.Zero(f, s.Outstanding())
	}},
	{"AReplayThatDoesNotKnowTheDeadLetterIsRefused", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		e := a.makeDeadLetter()
		require.NoError(f, f.requestReplay("r1", 0, e))
		request := f.readReplays().After(0)[0]
		require.True(f, a.cursor.ApplyReplayRequest(&request, nil, f.readClock()))
		f.wantKind(domain.Conflict, a.trySettle())
		require.Len(f, f.deadLetters(), 1)
		require.Len(f, f.deadLetters()[0].History, pushPolicy.Attempts)
		a.reloadCursor()
		a.followReplays()
		a.storeSettlement()
		require.Empty(f, f.deadLetters())
	}},
	{"AReplayedDeadLetterOutlivesTheOthers", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		e := a.makeDeadLetter()
		require.NoError(f, f.requestReplay("r1", 0, e))
		a.followReplays()
		a.storeSettlement()
		f.advanceClock(30 * 24 * time.Hour)
		_, err := f.Cursors.Retry(f.ctx, f.id, e)
		require.NoError(f, err)
		a.makeDeadLetter()
		require.Len(f, f.deadLetters(), 1)
		require.Len(f, f.deadLetters()[0].History, 2*pushPolicy.Attempts)
	}},
	{"ADeliveryWithoutADocumentIsReplayed", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		call := a.callNext()
		a.noteAnswer(call, 200)
		a.storeSettlement()
		require.NoError(f, f.requestReplay("r1", 0, call.EntryID))
		a.followReplays()
		a.storeSettlement()
		b := f.loadCursor("b")
		again := b.callNext()
		require.Equal(f, call.EntryID, again.EntryID)
		b.noteAnswer(again, 200)
		b.storeSettlement()
		require.EqualValues(f, 2, f.loadCursor("b").cursor.Standing().Counters.Delivered)
	}},
	{"ARequestIsFollowedOnce", func(f *pushFixture) {
		f.appendMessages(Messages(1)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		e := a.makeDeadLetter()
		require.NoError(f, f.requestReplay("r1", 0, e))
		a.followReplays()
		a.followReplays()
		a.storeSettlement()
		b := f.loadCursor("b")
		b.followReplays()
		b.storeSettlement()
		require.EqualValues(f, 2, b.cursor.Standing().Counters.Triggered)
	}},
	{"RequestsAreNumberedAndAddedOnce", func(f *pushFixture) {
		f.createCursor()
		for i := range 3 {
			require.NoError(f, f.requestReplay(fmt.Sprint("r", i), 0, domain.EntryID{Number: int64(i)}))
			require.NoError(f, f.requestReplay(fmt.Sprint("r", i), 0, domain.EntryID{Number: int64(i)}), "a call may be repeated")
		}
		err := f.requestReplay("other", 0, domain.EntryID{Number: 1})
		require.Equal(f, domain.Conflict, domain.KindOf(err), "it is requested already")
		all := f.readReplays()
		require.Len(f, all, 3)
		require.Equal(f, 3, all[2].Number)
		require.Equal(f, f.readClock(), all[2].Delivery.Published)
		require.Equal(f, 3, f.shardEntry().Requested)
		require.NoError(f, f.requestReplay("later", 2, domain.EntryID{Number: 1}), "the first ones were followed")
		require.Len(f, f.readReplays(), 2)
		require.Equal(f, domain.Conflict, domain.KindOf(f.requestReplay("stale", 1, domain.EntryID{Number: 9})))
	}},
	{"RequestsOfARangeAreKept", func(f *pushFixture) {
		f.createCursor()
		want := domain.ReplayRange{From: f.readClock().Add(-time.Hour), To: f.readClock(), Filter: "a", OnlyDead: true, Rate: 5}
		require.NoError(f, f.addReplay(0, domain.ReplayRequest{ID: "range", Range: &want}))
		require.NoError(f, f.addReplay(0, domain.ReplayRequest{ID: "stop", Stop: "range"}))
		err := f.addReplay(0, domain.ReplayRequest{ID: "other", Range: &want})
		require.Equal(f, domain.Conflict, domain.KindOf(err), "one at a time")
		all := f.readReplays()
		require.Equal(f, &want, all[0].Range)
		require.Equal(f, "range", all[1].Stop)
	}},
	{"TheReplayOfARangeContinuesWithTheNextOwner", func(f *pushFixture) {
		f.appendMessages(Messages(4)...)
		f.createCursor()
		a := f.loadCursor("a")
		a.takeEntries()
		for range 3 {
			a.noteAnswer(a.callNext(), 200)
		}
		a.storeSettlement()
		require.NoError(f, f.addReplay(0, domain.ReplayRequest{
			ID: "range", Range: &domain.ReplayRange{From: f.readClock().Add(-time.Hour), To: f.readClock().Add(time.Hour), Rate: 5},
		}))
		a.followReplays()
		take := func(o *loadedCursor) {
			require.True(f, o.cursor.CanReplay(f.readClock()))
			at := o.cursor.Standing().Replay.At
			o.cursor.TakeReplay(at, f.readClock(), nil, f.readClock())
		}
		take(a)
		a.storeSettlement()
		a.noteAnswer(a.callNext(), 200)
		a.storeSettlement()
		a.noteAnswer(a.callNext(), 200)
		a.storeSettlement()
		require.EqualValues(f, 5, a.cursor.Standing().Counters.Delivered)
		a.cursor.Release()
		a.storeSettlement()
		b := f.loadCursor("b")
		for range 3 {
			take(b)
		}
		r := b.cursor.Standing().Replay
		require.Equal(f, domain.ReplayDone, r.State)
		require.Equal(f, []int64{4, 4, 0}, []int64{r.Seen, r.Matched, r.Skipped})
		b.storeSettlement()
		for range 3 {
			b.noteAnswer(b.callNext(), 200)
		}
		b.storeSettlement()
		s := f.loadCursor("c").cursor.Standing()
		require.EqualValues(f, 8, s.Counters.Triggered)
		require.EqualValues(f, 8, s.Counters.Delivered)
	}},
	{"SeekFindsWhatWasPublishedSince", func(f *pushFixture) {
		var times []time.Time
		const batches, each = 20, 30
		for range batches {
			times = append(times, f.readClock())
			messages := Messages(each)
			for i := range messages {
				messages[i].Attributes["filler"] = strings.Repeat("x", 900)
			}
			f.appendMessages(messages...)
			f.advanceClock(time.Minute)
		}
		times = append(times, f.readClock())
		for i, from := range times {
			for _, byNumber := range []bool{false, true} {
				want := int64(i * each)
				at, err := f.Streams.Seek(f.ctx, f.stream, 0, func(number int64, published time.Time) bool {
					if byNumber {
						return number < want
					}
					return published.Before(from)
				})
				require.NoError(f, err)
				require.LessOrEqual(f, at.Number, want)
				found, err := f.Streams.Read(f.ctx, f.stream, at, 10_000)
				require.NoError(f, err)
				if i == batches {
					for _, e := range found.Entries {
						require.Less(f, e.Position.Number, want)
					}
					continue
				}
				require.NotEmpty(f, found.Entries)
				require.LessOrEqual(f, found.Entries[0].Position.Number, want)
				all := f.readAll(at)
				require.EqualValues(f, batches*each-1, all[len(all)-1].Position.Number)
			}
		}
		f.advanceClock(PushRetention - batches/2*time.Minute)
		at, err := f.Streams.Seek(f.ctx, f.stream, 0, func(int64, time.Time) bool { return false })
		require.NoError(f, err)
		found, err := f.Streams.Read(f.ctx, f.stream, at, 1)
		require.NoError(f, err)
		require.NotEmpty(f, found.Entries, "the first ones have expired")
		require.NotZero(f, found.Entries[0].Position.Number)
	}},
	{"ACursorThatDoesNotExistIsNotReplayed", func(f *pushFixture) {
		require.Equal(f, domain.NotFound, domain.KindOf(f.requestReplay("r", 0, domain.EntryID{})))
		_, err := f.Shards.Replays(f.ctx, f.id)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
	}},
}
