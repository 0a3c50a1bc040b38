package repositorytest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

var bundleRules = []rule{
	{name: "a bundle comes back as it was added", test: func(f *fixture) {
		for _, b := range []domain.Bundle{
			{Content: domain.Manifest, Format: domain.JSON, Version: "1.0"},
			{
				Content: domain.Inline, Format: domain.XML, Version: "2.17-beta",
				Body: domain.Body{Length: 1<<53 - 1, Digest: domain.Digest{0, 1, 2, 13: 0xfd, 14: 0xfe, 15: 0xff}},
			},
		} {
			f.stored(1, From(domain.Charges), Weighing(3), Document("one"))
			f.stored(1, From(domain.Charges), Weighing(4), Document("two"))
			f.stored(1, From(domain.Charges), Weighing(5), Document("one"))
			next := f.next()
			whole, _, err := Fill(f.ctx, next.Run)
			require.NoError(f, err)
			whole.Content, whole.Format, whole.Version, whole.Body = b.Content, b.Format, b.Version, b.Body
			added, err := f.Bundles.Add(f.ctx, whole, next.Run)
			require.NoError(f, err)
			require.False(f, added.Opened.IsZero())
			whole.Opened = added.Opened
			f.sameBundle(whole, added)
			require.Equal(f, domain.Weight(12), added.Weight)
			require.Equal(f, "one,two", added.MessageType())

			f.sameBundle(added, *f.next().Open)
			f.sameBundle(added, *f.next(MasterData).Open)
			f.acknowledge(Peeked{Bundle: added})
		}
	}},

	{name: "a bundle stays the same until it is acknowledged", test: func(f *fixture) {
		events := f.stored(3)
		b := f.peek()
		for range 3 {
			again := f.peeksInto(events...)
			f.sameBundle(b.Bundle, again.Bundle)
			f.stored(2)
			f.stored(1, From(domain.Charges))
		}
	}},

	{name: "an open bundle is found by its id, with its events and no others", capacity: 2, test: func(f *fixture) {
		events := f.stored(5)
		open := f.peek()
		f.stored(1)
		f.stored(1, From(domain.Charges))
		other := f.peek(MasterData)
		for range 2 {
			found, run, err := f.Bundles.Find(f.ctx, f.actor, open.ID)
			require.NoError(f, err)
			f.sameBundle(open.Bundle, found)
			f.same(events, f.read(run))
			require.Equal(f, open.Cabinet, run.Cabinet())
			require.Equal(f, open.Group, run.Group())
			require.Equal(f, int64(2), run.BacklogAfter(open.Count).Events, "in all groups")
			found.DocumentTypes[0] = documentType("other")

			found, _, err = f.Bundles.Find(f.ctx, f.actor, other.ID)
			require.NoError(f, err)
			f.sameBundle(other.Bundle, found)
		}
		f.acknowledge(open)
	}},

	{name: "the run of a bundle that was found opens nothing", test: func(f *fixture) {
		f.stored(2)
		open := f.peek()
		_, run, err := f.Bundles.Find(f.ctx, f.actor, open.ID)
		require.NoError(f, err)
		_, err = f.add(NewBundleID(), run, 1)
		f.refuses(domain.Conflict, err)
	}},

	{name: "what the caller does to a bundle it was given does not matter", test: func(f *fixture) {
		f.stored(1)
		added := f.peek()
		want := added.DocumentTypes[0]
		other := documentType("other")
		added.DocumentTypes[0] = other
		f.next().Open.DocumentTypes[0] = other
		require.Equal(f, want, f.next().Open.DocumentTypes[0])
	}},

	{name: "a time of opening that the caller states is kept", test: func(f *fixture) {
		f.stored(1)
		next := f.next()
		b, _, err := Fill(f.ctx, next.Run)
		require.NoError(f, err)
		b.Opened = time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)
		added, err := f.Bundles.Add(f.ctx, b, next.Run)
		require.NoError(f, err)
		f.sameBundle(b, added)
		f.sameBundle(b, *f.next().Open)
	}},

	{name: "a bundle takes the first events of its run and leaves the others", capacity: 3, test: func(f *fixture) {
		events := f.stored(9)
		for _, n := range []int{1, 4, 3} {
			b, err := f.add(NewBundleID(), f.next().Run, n)
			require.NoError(f, err)
			f.same(events[:n], f.read(f.next().Run))
			f.acknowledge(Peeked{Bundle: b})
			events = events[n:]
		}
		f.dequeues(events...)
		f.nothing()
	}},

	{name: "a bundle takes no more events than its run has yielded", test: func(f *fixture) {
		f.stored(5)
		events := f.read(f.next().Run)
		run := f.next().Run
		yielded := 0
		for _, err := range run.Events(f.ctx) {
			require.NoError(f, err)
			if yielded++; yielded == 2 {
				break
			}
		}
		none := bundleOf(NewBundleID(), run, events[:1])
		none.Count = 0
		for _, b := range []domain.Bundle{none, bundleOf(NewBundleID(), run, events[:3])} {
			_, err := f.Bundles.Add(f.ctx, b, run)
			f.refuses(domain.Invalid, err)
		}
		_, err := f.Bundles.Add(f.ctx, bundleOf(NewBundleID(), run, events[:2]), run)
		require.NoError(f, err)
	}},

	{name: "events saved in the meantime do not hinder Add", test: func(f *fixture) {
		events := f.stored(2)
		run := f.next().Run
		later := f.stored(2)
		b, err := f.add(NewBundleID(), run, 2)
		require.NoError(f, err)
		f.same(events, f.read(f.next().Run))
		f.acknowledge(Peeked{Bundle: b})
		f.dequeues(later...)
	}},

	{name: "a second bundle in a group is refused", test: func(f *fixture) {
		f.stored(2)
		run := f.next().Run
		first, err := f.add(NewBundleID(), run, 1)
		require.NoError(f, err)
		second := NewBundleID()
		_, err = f.add(second, run, 1)
		f.refuses(domain.Conflict, err)
		_, err = f.add(second, f.next().Run, 1) // the run of the open bundle opens no other
		f.refuses(domain.Conflict, err)
		f.notOpen(second)
		f.sameBundle(first, *f.next().Open)
	}},

	{name: "origins of one group share its open bundle, those of others do not", test: func(f *fixture) {
		groups := domain.DefaultGroups()
		for _, a := range groups.Origins() {
			for _, b := range groups.Origins() {
				f := f.withActor(NewActor())
				f.stored(1, From(a))
				f.stored(1, From(b), Typed("other"))
				groupA, _ := groups.Of(a)
				groupB, _ := groups.Of(b)
				runA, runB := f.next(groupA).Run, f.next(groupB).Run
				first, err := f.add(NewBundleID(), runA, 1)
				require.NoError(f, err)
				second, err := f.add(NewBundleID(), runB, 1)
				if groupA != groupB {
					require.NoError(f, err, "%s and %s", a, b)
					require.Equal(f, second.ID, f.next(groupB).Open.ID)
				} else {
					f.refuses(domain.Conflict, err)
					require.Equal(f, first.ID, f.next(groupB).Open.ID, "%s and %s", a, b)
				}
			}
		}
	}},

	{name: "an id that is open or was ever acknowledged is in use, in every group", test: func(f *fixture) {
		f.stored(3)
		f.stored(1, From(domain.Charges))
		used := f.peek(TimeSeries)
		for range 2 { // open, then acknowledged
			_, err := f.add(used.ID, f.next(MasterData).Run, 1)
			f.inUse(err)
			_, err = f.add(used.ID, f.next(TimeSeries).Run, 1)
			f.inUse(err)
			if f.next(TimeSeries).Open != nil {
				f.acknowledge(used)
				f.stored(3)
			}
		}
		require.Nil(f, f.next().Open)
	}},

	{name: "an id in use is said to be so even if the race is lost too", test: func(f *fixture) {
		f.stored(1)
		used := f.peek()
		f.acknowledge(used)
		f.stored(2)
		run := f.next().Run
		f.peek()
		_, err := f.add(used.ID, run, 1)
		f.inUse(err)
	}},

	{name: "an Add that is repeated opens nothing else", test: func(f *fixture) {
		events := f.stored(3)
		run := f.next().Run
		b, err := f.add(NewBundleID(), run, 2)
		require.NoError(f, err)
		again, err := f.add(b.ID, run, 2)
		if err == nil { // recognised
			f.sameBundle(b, again)
		} else {
			require.Equal(f, domain.Conflict, domain.KindOf(err))
		}
		f.sameBundle(b, *f.next().Open)
		f.acknowledge(Peeked{Bundle: b})
		_, err = f.add(b.ID, run, 2)
		require.Equal(f, domain.Conflict, domain.KindOf(err))
		f.dequeues(events[2])
		f.nothing()
	}},

	{name: "an id that was refused is free", test: func(f *fixture) {
		f.stored(1)
		run := f.next().Run
		winner := f.peek()
		id := NewBundleID()
		_, err := f.add(id, run, 1)
		f.refuses(domain.Conflict, err)
		f.acknowledge(winner)
		f.stored(1)
		_, err = f.add(id, f.next().Run, 1)
		require.NoError(f, err)
	}},

	{name: "one id for bundles of two recipients is two bundles", test: func(f *fixture) {
		other := f.withActor(NewActor())
		f.stored(1)
		theirs := other.stored(1)
		mine := f.peek()
		_, err := other.add(mine.ID, other.next().Run, 1)
		require.NoError(f, err)
		f.acknowledge(mine)
		f.notOpen(mine.ID)
		require.Equal(f, mine.ID, other.next().Open.ID)
		other.dequeues(theirs...)
	}},

	{name: "a run from before an Acknowledge opens nothing", test: func(f *fixture) {
		f.stored(1)
		stale := f.next().Run
		f.acknowledge(f.peek())
		_, err := f.add(NewBundleID(), stale, 1)
		f.refuses(domain.Conflict, err)
		f.nothing()
	}},

	{name: "the run of an open bundle opens nothing, not even after its Acknowledge", test: func(f *fixture) {
		f.stored(2)
		open := f.peek()
		run := f.next().Run
		_, err := f.add(NewBundleID(), run, 2)
		f.refuses(domain.Conflict, err)
		f.acknowledge(open)
		_, err = f.Bundles.Add(f.ctx, bundleOf(NewBundleID(), run, open.Events), run)
		f.refuses(domain.Conflict, err)
		f.nothing()
	}},

	{name: "a run from before an Acknowledge in another cabinet of the group opens nothing", test: func(f *fixture) {
		first := f.stored(1, From(domain.Charges))
		second := f.stored(2, From(domain.MarketRoles))
		stale := f.next().Run
		f.dequeues(first...)
		_, err := f.add(NewBundleID(), stale, 1)
		f.refuses(domain.Conflict, err)
		f.dequeues(second...)
	}},

	{name: "a run is not outdated by what happens in other groups or to other recipients", test: func(f *fixture) {
		f.stored(1)
		run := f.next(TimeSeries).Run
		f.stored(1, From(domain.Charges))
		f.acknowledge(f.peek(MasterData))
		other := f.withActor(NewActor())
		other.stored(1)
		other.acknowledge(other.peek())
		_, err := f.add(NewBundleID(), run, 1)
		require.NoError(f, err)
	}},

	{name: "what is acknowledged does not come back", test: func(f *fixture) {
		events := f.stored(5)
		b, err := f.add(NewBundleID(), f.next().Run, 1)
		require.NoError(f, err)
		f.acknowledge(Peeked{Bundle: b})
		f.dequeues(events[1:]...)
		f.nothing()
	}},

	{name: "unknown, foreign and closed bundles are NotFound, and look alike", test: func(f *fixture) {
		f.stored(1)
		closed := f.peek()
		f.acknowledge(closed)
		other := f.withActor(NewActor())
		other.stored(1)
		foreign := other.peek()

		for name, ask := range map[string]func(domain.BundleID) error{
			"Acknowledge": func(id domain.BundleID) error {
				_, err := f.Bundles.Acknowledge(f.ctx, f.actor, id)
				return err
			},
			"Find": func(id domain.BundleID) error {
				_, _, err := f.Bundles.Find(f.ctx, f.actor, id)
				return err
			},
		} {
			texts := make(map[string]bool)
			for _, id := range []domain.BundleID{NewBundleID(), foreign.ID, closed.ID} {
				err := ask(id)
				f.refuses(domain.NotFound, err)
				texts[strings.ReplaceAll(err.Error(), id.String(), "ID")] = true
			}
			require.Len(f, texts, 1, "error texts of %s but for the id: %v", name, texts)
		}
		other.acknowledge(foreign)
	}},

	{name: "under an ended context nothing is opened and nothing closed", test: func(f *fixture) {
		f.stored(1)
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		next := f.next()
		b, _, err := Fill(f.ctx, next.Run)
		require.NoError(f, err)
		_, err = f.Bundles.Add(ended, b, next.Run)
		require.ErrorIs(f, err, context.Canceled)
		require.Nil(f, f.next().Open)
		open := f.peek()
		_, err = f.Bundles.Acknowledge(ended, f.actor, open.ID)
		require.ErrorIs(f, err, context.Canceled)
		_, _, err = f.Bundles.Find(ended, f.actor, open.ID)
		require.ErrorIs(f, err, context.Canceled)
		f.acknowledge(open)
	}},
}
