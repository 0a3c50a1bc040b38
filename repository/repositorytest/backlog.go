package repositorytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var backlogRules = []contractRule{
	{name: "events have the time of their Save", test: func(f *fixture) {
		f.saveNew(2)
		f.saveNew(1)
		events := f.readRange(f.readNext().Run)
		require.False(f, events[0].Saved.IsZero())
		require.Equal(f, events[0].Saved, events[1].Saved, "of one Save")
		require.True(f, events[2].Saved.After(events[1].Saved), "of the next")
	}},

	{name: "the backlog after a bundle is that of the requested groups, with their open bundles", test: func(f *fixture) {
		f.saveNew(3, WithOrigin(domain.Charges))
		f.saveNew(2, WithOrigin(domain.MarketRoles))
		f.saveNew(4)
		f.requireBacklog(2, f.peek(MasterData))
		f.requireBacklog(2, f.peek(MasterData)) // a repeated Peek returns the same backlog
		series := f.peek(TimeSeries)
		f.requireBacklog(0, series)
		f.requireBacklog(6, f.peek()) // Peek returns the bundle of masterdata, which was opened first; the backlog has two events of masterdata and four of timeseries
		f.saveNew(5, WithOrigin(domain.Charges))
		f.requireBacklog(11, f.peek())
		f.requireBacklog(7, f.peek(MasterData))
		f.requireBacklog(0, f.peek(TimeSeries))
	}},

	{name: "the backlog after part of a run is counted", capacity: 3, test: func(f *fixture) {
		f.saveNew(8)
		f.saveNew(2, WithOrigin(domain.Charges))
		run := f.readNext(TimeSeries, MasterData).Run
		events := f.readRange(run)
		for n := 1; n <= len(events); n++ {
			require.Equal(f, int64(10-n), run.BacklogAfter(n).Events)
		}
	}},

	{name: "a Dequeue returns the backlog of the groups that were requested when the bundle was opened", test: func(f *fixture) {
		f.saveNew(3, WithoutBundling)
		f.saveNew(4, WithOrigin(domain.Charges))
		one := f.peek(TimeSeries)
		require.Equal(f, int64(2), f.acknowledgeAndCount(one).Events)
		all := f.peek()
		require.Equal(f, TimeSeries, all.Group)
		require.Equal(f, int64(5), f.acknowledgeAndCount(all).Events)
		f.peek(MasterData)
		f.peek(TimeSeries)
		f.saveNew(1)
		require.Equal(f, int64(1), f.acknowledgeAndCount(f.peek(TimeSeries)).Events)
		require.Equal(f, int64(0), f.acknowledgeAndCount(f.peek(MasterData)).Events)
		require.Equal(f, domain.Backlog{}, f.acknowledgeAndCount(f.peek()))
	}},

	{name: "the reported age of a backlog is never too low", capacity: 3, test: func(f *fixture) {
		ages := make(map[domain.EventID]time.Time)
		remember := func(events ...domain.Event) {
			run := f.withActor(NewActor()) // the event of the new actor is saved after events, so its time is not earlier than theirs
			run.saveNew(1)
			saved := run.readRange(run.readNext().Run)[0].Saved
			for _, e := range events {
				ages[e.ID] = saved
			}
		}
		for i := range 60 {
			remember(f.saveNew(1+i%4, WithOrigin(AllOrigins[i*i%5]))...)
			if i%5 == 4 {
				b := f.peek()
				f.requireAge(b, b.Behind, ages)
				b = f.peek()
				f.requireAge(b, b.Behind, ages)
				for _, e := range b.Events {
					delete(ages, e.ID)
				}
				f.requireAge(b, f.acknowledgeAndCount(b), ages)
			}
		}
		for len(ages) > 0 {
			b := f.peek()
			for _, e := range b.Events {
				delete(ages, e.ID)
			}
			f.requireAge(b, b.Behind, ages)
			f.requireAge(b, f.acknowledgeAndCount(b), ages)
		}
	}},

	{name: "no reported time is before the first Save", test: func(f *fixture) {
		f.saveNew(1)
		first := f.readRange(f.readNext().Run)[0].Saved
		for range 30 {
			f.saveNew(1, WithoutBundling)
			require.False(f, f.peek().Behind.Oldest.Before(first))
		}
	}},

	{name: "a queue counts all unacknowledged events, and has the open bundle", test: func(f *fixture) {
		none, err := f.Events.Queues(f.ctx, f.actor)
		require.NoError(f, err)
		for i, group := range domain.DefaultGroups().All() {
			require.Equal(f, repository.Queue{Group: group}, none[i])
		}
		f.saveNew(3, WithoutBundling)
		f.saveNew(2, WithOrigin(domain.Charges))
		open := f.peek(TimeSeries)
		queues, err := f.Events.Queues(f.ctx, f.actor)
		require.NoError(f, err)
		byGroup := make(map[domain.Group]repository.Queue)
		for _, q := range queues {
			byGroup[q.Group] = q
		}
		require.Len(f, byGroup, 3)
		require.Equal(f, int64(3), byGroup[TimeSeries].Waiting.Events)
		f.requireSameBundle(open.Bundle, *byGroup[TimeSeries].Open)
		require.False(f, byGroup[TimeSeries].Waiting.Oldest.After(open.Events[0].Saved))
		require.Equal(f, int64(2), byGroup[MasterData].Waiting.Events)
		require.Nil(f, byGroup[MasterData].Open)
		require.Equal(f, repository.Queue{Group: Aggregations}, byGroup[Aggregations])
	}},

	{name: "the watermark rises when events are saved, and only then", test: func(f *fixture) {
		watermark := func() domain.Sequence {
			w, err := f.Events.Watermark(f.ctx, f.actor)
			require.NoError(f, err)
			return w
		}
		require.Zero(f, watermark())
		events := f.saveNew(3)
		first := watermark()
		require.Positive(f, first)
		f.save(events...)
		f.acknowledge(f.peek())
		f.withActor(NewActor()).saveNew(1)
		require.Equal(f, first, watermark())
		f.saveNew(1, WithOrigin(domain.Charges))
		require.Greater(f, watermark(), first)
	}},
}

// requireBacklog requires that want events wait behind a bundle.
func (f *fixture) requireBacklog(want int64, b PeekedBundle) {
	f.Helper()
	require.Equal(f, want, b.Behind.Events)
	require.Equal(f, want == 0, b.Behind.Oldest.IsZero(), "whether there is an oldest")
}

// acknowledgeAndCount acknowledges a bundle and returns the remaining backlog.
func (f *fixture) acknowledgeAndCount(b PeekedBundle) domain.Backlog {
	f.Helper()
	closed, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
	require.NoError(f, err)
	f.requireSameBundle(b.Bundle, closed.Bundle)
	return closed.Remaining
}

// requireAge requires that a backlog counts exactly the events in ages that are not in b, and that
// backlog.Oldest is not after the time in ages of any of these events. Each time in ages is later than
// the Save of its event.
func (f *fixture) requireAge(b PeekedBundle, backlog domain.Backlog, ages map[domain.EventID]time.Time) {
	f.Helper()
	inBundle := make(map[domain.EventID]bool)
	for _, e := range b.Events {
		inBundle[e.ID] = true
	}
	waiting := int64(0)
	for id, saved := range ages {
		if !inBundle[id] {
			waiting++
			require.False(f, backlog.Oldest.After(saved), "it says %v, but an event waits since before %v", backlog.Oldest, saved)
		}
	}
	require.Equal(f, waiting, backlog.Events)
	require.Equal(f, waiting == 0, backlog.Oldest.IsZero())
}
