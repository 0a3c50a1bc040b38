package repositorytest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var nextRules = []contractRule{
	{name: "nothing saved is no data", test: func(f *fixture) {
		f.wantNothing()
		f.wantNothing(TimeSeries)
	}},

	{name: "a recipient without a mailbox has another error for no data", test: func(f *fixture) {
		missing := func() error {
			_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
			require.ErrorIs(f, err, domain.ErrNoData)
			return err
		}
		require.ErrorIs(f, missing(), repository.ErrNoMailbox)
		f.wantDequeue(f.saveNew(1)...)
		require.NotErrorIs(f, missing(), repository.ErrNoMailbox)
	}},

	{name: "data of other groups only is no data", test: func(f *fixture) {
		want := f.saveNew(1, WithOrigin(domain.Charges))
		f.wantNothing(TimeSeries)
		f.wantNothing(TimeSeries, Aggregations)
		f.wantSame(want, f.peek(MasterData).Events)
	}},

	{name: "an open bundle of another group is not returned", test: func(f *fixture) {
		f.saveNew(1)
		f.peek()
		f.wantNothing(MasterData)
		f.wantNothing(Aggregations, MasterData)
	}},

	{name: "the cabinet with the smallest sequence number comes first, and alone", test: func(f *fixture) {
		first := f.saveNew(5, WithOrigin(domain.MeteringPoints))
		second := f.saveNew(5, WithOrigin(domain.TimeSeries))
		third := f.saveNew(5, WithOrigin(domain.MarketRoles))
		f.wantSame(second, f.readRange(f.readNext(Aggregations, TimeSeries).Run))
		f.wantDequeue(first...)
		f.wantDequeue(second...)
		f.wantDequeue(third...)
		f.wantNothing()
	}},

	{name: "cabinets whose events alternate take turns", test: func(f *fixture) {
		var all []domain.Event
		for range 4 {
			all = append(all, f.saveNew(1, WithoutBundling, WithOrigin(domain.Charges))...)
			all = append(all, f.saveNew(1, WithoutBundling, WithOrigin(domain.Aggregations))...)
			all = append(all, f.saveNew(1, WithoutBundling, WithContentType("other"))...)
		}
		for _, e := range all {
			f.wantDequeue(e)
		}
		f.wantNothing()
	}},

	{name: "content types of one origin are cabinets of their own", test: func(f *fixture) {
		a1, b1 := f.event(WithContentType("a")), f.event(WithContentType("b"))
		a2, b2 := f.event(WithContentType("a")), f.event(WithContentType("b"))
		f.save(a1, b1, a2, b2)
		f.wantDequeue(a1, a2)
		f.wantDequeue(b1, b2)
	}},

	{name: "content types are compared letter by letter", test: func(f *fixture) {
		lower, upper, joined := f.event(WithContentType("a_b/c")), f.event(WithContentType("A_B/C")), f.event(WithContentType("a_b/c#d?%2F"))
		f.save(lower, upper, joined)
		f.wantDequeue(lower)
		f.wantDequeue(upper)
		f.wantDequeue(joined)
	}},

	{name: "a run names its group and its cabinet", test: func(f *fixture) {
		events := f.saveNew(1, WithOrigin(domain.Charges))
		for range 2 { // first without an open bundle, then with one
			run := f.readNext().Run
			require.Equal(f, MasterData, run.Group())
			require.Equal(f, events[0].Cabinet(), run.Cabinet())
			f.peek()
		}
	}},

	{name: "the folder of a run is that of its first event, open or not, for every caller", capacity: 3, test: func(f *fixture) {
		folders := make(map[string]domain.CabinetKey)
		f.saveNew(2, WithOrigin(domain.Charges))
		f.saveNew(8)
		for range 4 {
			run := f.readNext().Run
			folder := run.Folder()
			require.NoError(f, repository.CheckObjectName(folder))
			require.Equal(f, folder, f.readNext().Run.Folder())
			_, err := f.openBundle(NewBundleID(), run, min(2, len(f.readRange(run))))
			require.NoError(f, err)
			f.saveNew(1, WithOrigin(run.Cabinet().Origin))
			next := f.readNext()
			require.Equal(f, folder, next.Run.Folder())
			found, run, err := f.Bundles.Find(f.ctx, f.actor, next.Open.ID)
			require.NoError(f, err)
			require.Equal(f, folder, run.Folder())
			if cabinet, ok := folders[folder]; ok {
				require.Equal(f, cabinet, run.Cabinet(), "folder %s is of one cabinet", folder)
			}
			folders[folder] = run.Cabinet()
			f.acknowledge(PeekedBundle{Bundle: found})
		}
		require.GreaterOrEqual(f, len(folders), 2)
	}},

	{name: "the backlog counts the waiting events of the requested groups, open bundles included", test: func(f *fixture) {
		f.saveNew(3, WithOrigin(domain.Charges))
		f.saveNew(2, WithOrigin(domain.MarketRoles))
		f.saveNew(4)
		require.Equal(f, int64(9), f.readNext().Waiting)
		require.Equal(f, int64(5), f.readNext(MasterData).Waiting)
		require.Equal(f, int64(4), f.readNext(TimeSeries, Aggregations).Waiting)
		open := f.peek(MasterData)
		require.Equal(f, int64(9), f.readNext().Waiting)
		require.Equal(f, int64(5), f.readNext(MasterData).Waiting)
		f.acknowledge(open)
		require.Equal(f, int64(6), f.readNext().Waiting)
		require.Equal(f, int64(2), f.readNext(MasterData).Waiting)
		f.saveNew(1)
		require.Equal(f, int64(7), f.readNext().Waiting)
	}},

	{name: "a group that is named twice counts once", test: func(f *fixture) {
		f.saveNew(3)
		require.Equal(f, int64(3), f.readNext(TimeSeries, TimeSeries).Waiting)
	}},

	{name: "a run does not change when events are saved after it", test: func(f *fixture) {
		events := f.saveNew(3)
		run := f.readNext().Run
		f.saveNew(3)
		f.wantSame(events, f.readRange(run))
	}},

	{name: "ranging over a run again starts over", capacity: 3, test: func(f *fixture) {
		events := f.saveNew(10)
		run := f.readNext().Run
		f.wantSame(events, f.readRange(run))
		f.wantSame(events, f.readRange(run))
	}},

	{name: "ranging over a run may stop at any event", capacity: 3, test: func(f *fixture) {
		events := f.saveNew(8)
		run := f.readNext().Run
		for n := 1; n <= len(events); n++ {
			var got []repository.StoredEvent
			for e, err := range run.Events(f.ctx) {
				require.NoError(f, err)
				if got = append(got, e); len(got) == n {
					break
				}
			}
			f.wantSame(events[:n], got)
		}
	}},

	{name: "reading with an ended context yields its error and ends", test: func(f *fixture) {
		f.saveNew(3)
		run := f.readNext().Run
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		events, err := ReadEvents(ended, run)
		require.ErrorIs(f, err, context.Canceled)
		require.Empty(f, events)
		require.Len(f, f.readRange(run), 3)
	}},

	{name: "a call with an ended context fails, and not with no data", test: func(f *fixture) {
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.Events.NextUnacknowledged(ended, f.actor, AllGroups)
		require.ErrorIs(f, err, context.Canceled)
		require.NotErrorIs(f, err, domain.ErrNoData)
	}},

	{name: "a run for a new bundle yields up to the events of six drawers", capacity: 3, test: func(f *fixture) {
		events := f.saveNew(40)
		require.Len(f, f.readRange(f.readNext().Run), 18)
		for _, n := range []int{1, 1, 2, 5, 0, 3} { // the next run begins at slot 1, at slot 2, in the second drawer, …
			if n > 0 {
				next := f.readNext()
				b, err := f.openBundle(NewBundleID(), next.Run, n)
				require.NoError(f, err)
				f.acknowledge(PeekedBundle{Bundle: b})
				events = events[n:]
			}
			begun := (40 - len(events)) % 3 // number of acknowledged slots in the first drawer
			f.wantSame(events[:18-begun], f.readRange(f.readNext().Run))
		}
		bundles := f.drain()
		require.Len(f, bundles, 2) // the first bundle contains the events of six drawers, the second the remaining events
		f.wantSame(events[:18], bundles[0].Events)
		f.wantSame(events[18:], bundles[1].Events)
	}},

	{name: "the run of an open bundle has its events, whatever was saved since", capacity: 3, test: func(f *fixture) {
		events := f.saveNew(10)
		b, err := f.openBundle(NewBundleID(), f.readNext().Run, 4)
		require.NoError(f, err)
		f.saveNew(5)
		next := f.readNext()
		f.requireSameBundle(b, *next.Open)
		f.wantSame(events[:4], f.readRange(next.Run))
		f.wantSame(events[:4], f.readRange(next.Run))
	}},

	{name: "an open bundle goes before anything new, however old that is", test: func(f *fixture) {
		older := f.saveNew(1, WithOrigin(domain.Charges))
		newer := f.saveNew(1)
		f.wantSame(newer, f.peek(TimeSeries).Events)
		f.wantDequeue(newer...)
		f.wantDequeue(older...)
	}},

	{name: "of open bundles in three groups the one open longest comes first", test: func(f *fixture) {
		f.saveNew(1, WithOrigin(domain.Charges))
		f.saveNew(1, WithOrigin(domain.Aggregations))
		f.saveNew(1)
		opened := []PeekedBundle{f.peek(Aggregations), f.peek(TimeSeries), f.peek(MasterData)}
		require.Equal(f, opened[1].ID, f.readNext(MasterData, TimeSeries).Open.ID)
		for _, b := range opened {
			next := f.readNext()
			f.requireSameBundle(b.Bundle, *next.Open)
			f.wantSame([]domain.Event{b.Events[0].Event}, f.readRange(next.Run))
			f.acknowledge(b)
		}
		f.wantNothing()
	}},

	{name: "bundles open in three groups are dequeued in any order", test: func(f *fixture) {
		f.saveNew(2, WithOrigin(domain.Charges))
		f.saveNew(2, WithOrigin(domain.Aggregations))
		f.saveNew(2)
		opened := []PeekedBundle{f.peek(TimeSeries), f.peek(Aggregations), f.peek(MasterData)}
		f.acknowledge(opened[2])
		f.acknowledge(opened[0])
		require.Equal(f, opened[1].ID, f.readNext().Open.ID)
		f.acknowledge(opened[1])
		f.wantNothing()
	}},

	{name: "peek, dequeue, insert, peek: the new event comes", test: func(f *fixture) {
		f.wantDequeue(f.saveNew(3)...)
		f.wantNothing()
		f.wantDequeue(f.saveNew(1)...)
		f.wantNothing()
	}},

	{name: "peek, insert, dequeue, peek: the new event comes", test: func(f *fixture) {
		a := f.saveNew(1)
		open := f.peek()
		b := f.saveNew(1)
		f.requirePeek(a...)
		f.acknowledge(open)
		f.wantDequeue(b...)
		f.wantNothing()
	}},

	{name: "events that do not fit the first ones are left for the next bundle", test: bundlingRules},
}

// bundlingRules checks that stores preserve the members on which the rules of bundling depend.
func bundlingRules(f *fixture) {
	type kind struct {
		kb    domain.Weight
		alone bool
	}
	const most = domain.MaxBundleWeight
	t, a := kind{1, false}, kind{1, true}
	for _, tc := range []struct {
		name   string
		events []kind
		counts []int
	}{
		{"all may be bundled", []kind{t, t, t}, []int{3}},
		{"none may be bundled", []kind{a, a, a}, []int{1, 1, 1}},
		{"one in the middle may", []kind{a, t, a}, []int{1, 1, 1}},
		{"the first may not", []kind{a, t, t}, []int{1, 2}},
		{"the first may, the others not", []kind{t, a, a}, []int{1, 1, 1}},
		{"one in the middle may not", []kind{t, a, t}, []int{1, 1, 1}},
		{"exactly full", []kind{{most - 1, false}, t, t}, []int{2, 1}},
		{"too heavy together", []kind{{most, false}, t, {most, false}}, []int{1, 1, 1}},
		{"heavier than a bundle may be", []kind{{most + 1, false}, t, t}, []int{1, 2}},
		{"nothing overtakes", []kind{t, {most, false}, t}, []int{1, 1, 1}},
	} {
		var events []domain.Event
		for _, k := range tc.events {
			e := f.event(WithWeight(k.kb))
			e.SupportsBundling = !k.alone
			events = append(events, e)
		}
		f.save(events...)
		for _, n := range tc.counts {
			f.wantDequeue(events[:n]...)
			events = events[n:]
		}
		_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
		require.True(f, errors.Is(err, domain.ErrNoData), tc.name)
	}
}
