package repositorytest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var nextRules = []rule{
	{name: "nothing saved is no data", test: func(f *fixture) {
		f.nothing()
		f.nothing(TimeSeries)
	}},

	{name: "no data of a recipient without a mailbox has an error of its own", test: func(f *fixture) {
		missing := func() error {
			_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
			require.ErrorIs(f, err, domain.ErrNoData)
			return err
		}
		require.ErrorIs(f, missing(), repository.ErrNoMailbox)
		f.dequeues(f.stored(1)...)
		require.NotErrorIs(f, missing(), repository.ErrNoMailbox)
	}},

	{name: "data of other groups only is no data", test: func(f *fixture) {
		want := f.stored(1, From(domain.Charges))
		f.nothing(TimeSeries)
		f.nothing(TimeSeries, Aggregations)
		f.same(want, f.peek(MasterData).Events)
	}},

	{name: "an open bundle of another group is not returned", test: func(f *fixture) {
		f.stored(1)
		f.peek()
		f.nothing(MasterData)
		f.nothing(Aggregations, MasterData)
	}},

	{name: "the cabinet with the smallest sequence number comes first, and alone", test: func(f *fixture) {
		first := f.stored(5, From(domain.MeteringPoints))
		second := f.stored(5, From(domain.TimeSeries))
		third := f.stored(5, From(domain.MarketRoles))
		f.same(second, f.read(f.next(Aggregations, TimeSeries).Run))
		f.dequeues(first...)
		f.dequeues(second...)
		f.dequeues(third...)
		f.nothing()
	}},

	{name: "cabinets whose events alternate take turns", test: func(f *fixture) {
		var all []domain.Event
		for range 4 {
			all = append(all, f.stored(1, Alone, From(domain.Charges))...)
			all = append(all, f.stored(1, Alone, From(domain.Aggregations))...)
			all = append(all, f.stored(1, Alone, Typed("other"))...)
		}
		for _, e := range all {
			f.dequeues(e)
		}
		f.nothing()
	}},

	{name: "content types of one origin are cabinets of their own", test: func(f *fixture) {
		a1, b1 := f.event(Typed("a")), f.event(Typed("b"))
		a2, b2 := f.event(Typed("a")), f.event(Typed("b"))
		f.save(a1, b1, a2, b2)
		f.dequeues(a1, a2)
		f.dequeues(b1, b2)
	}},

	{name: "content types are compared letter by letter", test: func(f *fixture) {
		lower, upper, joined := f.event(Typed("a_b/c")), f.event(Typed("A_B/C")), f.event(Typed("a_b/c#d?%2F"))
		f.save(lower, upper, joined)
		f.dequeues(lower)
		f.dequeues(upper)
		f.dequeues(joined)
	}},

	{name: "a run names its group and its cabinet", test: func(f *fixture) {
		events := f.stored(1, From(domain.Charges))
		for range 2 { // not open, then open
			run := f.next().Run
			require.Equal(f, MasterData, run.Group())
			require.Equal(f, events[0].Cabinet(), run.Cabinet())
			f.peek()
		}
	}},

	{name: "the folder of a run is that of its first event, open or not, whoever asks", capacity: 3, test: func(f *fixture) {
		folders := make(map[string]domain.CabinetKey)
		f.stored(2, From(domain.Charges))
		f.stored(8)
		for range 4 {
			run := f.next().Run
			folder := run.Folder()
			require.NoError(f, repository.CheckObjectName(folder))
			require.Equal(f, folder, f.next().Run.Folder())
			_, err := f.add(NewBundleID(), run, min(2, len(f.read(run))))
			require.NoError(f, err)
			f.stored(1, From(run.Cabinet().Origin))
			next := f.next()
			require.Equal(f, folder, next.Run.Folder())
			found, run, err := f.Bundles.Find(f.ctx, f.actor, next.Open.ID)
			require.NoError(f, err)
			require.Equal(f, folder, run.Folder())
			if cabinet, ok := folders[folder]; ok {
				require.Equal(f, cabinet, run.Cabinet(), "folder %s is of one cabinet", folder)
			}
			folders[folder] = run.Cabinet()
			f.acknowledge(Peeked{Bundle: found})
		}
		require.GreaterOrEqual(f, len(folders), 2)
	}},

	{name: "the backlog counts what waits in the groups asked for, open bundles included", test: func(f *fixture) {
		f.stored(3, From(domain.Charges))
		f.stored(2, From(domain.MarketRoles))
		f.stored(4)
		require.Equal(f, int64(9), f.next().Waiting)
		require.Equal(f, int64(5), f.next(MasterData).Waiting)
		require.Equal(f, int64(4), f.next(TimeSeries, Aggregations).Waiting)
		open := f.peek(MasterData)
		require.Equal(f, int64(9), f.next().Waiting)
		require.Equal(f, int64(5), f.next(MasterData).Waiting)
		f.acknowledge(open)
		require.Equal(f, int64(6), f.next().Waiting)
		require.Equal(f, int64(2), f.next(MasterData).Waiting)
		f.stored(1)
		require.Equal(f, int64(7), f.next().Waiting)
	}},

	{name: "a group that is named twice counts once", test: func(f *fixture) {
		f.stored(3)
		require.Equal(f, int64(3), f.next(TimeSeries, TimeSeries).Waiting)
	}},

	{name: "a run does not change with what is saved after it", test: func(f *fixture) {
		events := f.stored(3)
		run := f.next().Run
		f.stored(3)
		f.same(events, f.read(run))
	}},

	{name: "ranging over a run again starts over", capacity: 3, test: func(f *fixture) {
		events := f.stored(10)
		run := f.next().Run
		f.same(events, f.read(run))
		f.same(events, f.read(run))
	}},

	{name: "breaking off is free at any event", capacity: 3, test: func(f *fixture) {
		events := f.stored(8)
		run := f.next().Run
		for n := 1; n <= len(events); n++ {
			var got []repository.StoredEvent
			for e, err := range run.Events(f.ctx) {
				require.NoError(f, err)
				if got = append(got, e); len(got) == n {
					break
				}
			}
			f.same(events[:n], got)
		}
	}},

	{name: "reading under an ended context yields its error and ends", test: func(f *fixture) {
		f.stored(3)
		run := f.next().Run
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		events, err := Read(ended, run)
		require.ErrorIs(f, err, context.Canceled)
		require.Empty(f, events)
		require.Len(f, f.read(run), 3)
	}},

	{name: "asking under an ended context fails, and not with no data", test: func(f *fixture) {
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.Events.NextUnacknowledged(ended, f.actor, AllGroups)
		require.ErrorIs(f, err, context.Canceled)
		require.NotErrorIs(f, err, domain.ErrNoData)
	}},

	{name: "a run for a new bundle yields at most what six drawers hold", capacity: 3, test: func(f *fixture) {
		events := f.stored(40)
		require.Len(f, f.read(f.next().Run), 18)
		for _, n := range []int{1, 1, 2, 5, 0, 3} { // at slot 1, at slot 2, over a border, …
			if n > 0 {
				next := f.next()
				b, err := f.add(NewBundleID(), next.Run, n)
				require.NoError(f, err)
				f.acknowledge(Peeked{Bundle: b})
				events = events[n:]
			}
			begun := (40 - len(events)) % 3 // slots of the first drawer that are acknowledged
			f.same(events[:18-begun], f.read(f.next().Run))
		}
		bundles := f.drain()
		require.Len(f, bundles, 2) // 28 events: the rest of six drawers, and what lies behind
		f.same(events[:18], bundles[0].Events)
		f.same(events[18:], bundles[1].Events)
	}},

	{name: "the run of an open bundle is its events, whatever has been saved since", capacity: 3, test: func(f *fixture) {
		events := f.stored(10)
		b, err := f.add(NewBundleID(), f.next().Run, 4)
		require.NoError(f, err)
		f.stored(5)
		next := f.next()
		f.sameBundle(b, *next.Open)
		f.same(events[:4], f.read(next.Run))
		f.same(events[:4], f.read(next.Run))
	}},

	{name: "an open bundle goes before anything new, however old that is", test: func(f *fixture) {
		older := f.stored(1, From(domain.Charges))
		newer := f.stored(1)
		f.same(newer, f.peek(TimeSeries).Events)
		f.dequeues(newer...)
		f.dequeues(older...)
	}},

	{name: "of open bundles in three groups the one open longest comes first", test: func(f *fixture) {
		f.stored(1, From(domain.Charges))
		f.stored(1, From(domain.Aggregations))
		f.stored(1)
		opened := []Peeked{f.peek(Aggregations), f.peek(TimeSeries), f.peek(MasterData)}
		require.Equal(f, opened[1].ID, f.next(MasterData, TimeSeries).Open.ID)
		for _, b := range opened {
			next := f.next()
			f.sameBundle(b.Bundle, *next.Open)
			f.same([]domain.Event{b.Events[0].Event}, f.read(next.Run))
			f.acknowledge(b)
		}
		f.nothing()
	}},

	{name: "bundles open in three groups are dequeued in any order", test: func(f *fixture) {
		f.stored(2, From(domain.Charges))
		f.stored(2, From(domain.Aggregations))
		f.stored(2)
		opened := []Peeked{f.peek(TimeSeries), f.peek(Aggregations), f.peek(MasterData)}
		f.acknowledge(opened[2])
		f.acknowledge(opened[0])
		require.Equal(f, opened[1].ID, f.next().Open.ID)
		f.acknowledge(opened[1])
		f.nothing()
	}},

	{name: "peek, dequeue, insert, peek: the new event comes", test: func(f *fixture) {
		f.dequeues(f.stored(3)...)
		f.nothing()
		f.dequeues(f.stored(1)...)
		f.nothing()
	}},

	{name: "peek, insert, dequeue, peek: the new event comes", test: func(f *fixture) {
		a := f.stored(1)
		open := f.peek()
		b := f.stored(1)
		f.peeksInto(a...)
		f.acknowledge(open)
		f.dequeues(b...)
		f.nothing()
	}},

	{name: "what only the first events allow is left for the next bundle", test: bundlingRules},
}

// bundlingRules checks that stores keep what the rules of bundling decide on.
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
			e := f.event(Weighing(k.kb))
			e.SupportsBundling = !k.alone
			events = append(events, e)
		}
		f.save(events...)
		for _, n := range tc.counts {
			f.dequeues(events[:n]...)
			events = events[n:]
		}
		_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
		require.True(f, errors.Is(err, domain.ErrNoData), tc.name)
	}
}
