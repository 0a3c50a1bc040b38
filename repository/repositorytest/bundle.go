package repositorytest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

var bundleRules = []contractRule{
	{name: "a bundle is returned as it was added", test: func(f *fixture) {
		for _, b := range []domain.Bundle{
			{Content: domain.Manifest, Format: domain.JSON, Version: "1.0"},
			{
				Content: domain.Inline, Format: domain.XML, Version: "2.17-beta",
				Body: domain.Body{Length: 1<<53 - 1, Digest: domain.Digest{0, 1, 2, 13: 0xfd, 14: 0xfe, 15: 0xff}},
			},
		} {
			f.saveNew(1, WithOrigin(domain.Charges), WithWeight(3), WithDocumentType("one"))
			f.saveNew(1, WithOrigin(domain.Charges), WithWeight(4), WithDocumentType("two"))
			f.saveNew(1, WithOrigin(domain.Charges), WithWeight(5), WithDocumentType("one"))
			next := f.readNext()
			whole, _, err := MakeBundle(f.ctx, next.Run)
			require.NoError(f, err)
			whole.Content, whole.Format, whole.Version, whole.Body = b.Content, b.Format, b.Version, b.Body
			added, err := f.Bundles.Add(f.ctx, whole, next.Run)
			require.NoError(f, err)
			require.False(f, added.Opened.IsZero())
			whole.Opened = added.Opened
			f.requireSameBundle(whole, added)
			require.Equal(f, domain.Weight(12), added.Weight)
			require.Equal(f, "one,two", added.MessageType())

			f.requireSameBundle(added, *f.readNext().Open)
			f.requireSameBundle(added, *f.readNext(MasterData).Open)
			f.acknowledge(PeekedBundle{Bundle: added})
		}
	}},

	{name: "a bundle stays the same until it is acknowledged", test: func(f *fixture) {
		events := f.saveNew(3)
		b := f.peek()
		for range 3 {
			again := f.requirePeek(events...)
			f.requireSameBundle(b.Bundle, again.Bundle)
			f.saveNew(2)
			f.saveNew(1, WithOrigin(domain.Charges))
		}
	}},

	{name: "an open bundle is found by its id, with its events and no others", capacity: 2, test: func(f *fixture) {
		events := f.saveNew(5)
		open := f.peek()
		f.saveNew(1)
		f.saveNew(1, WithOrigin(domain.Charges))
		other := f.peek(MasterData)
		for range 2 {
			found, run, err := f.Bundles.Find(f.ctx, f.actor, open.ID)
			require.NoError(f, err)
			f.requireSameBundle(open.Bundle, found)
			f.wantSame(events, f.readRange(run))
			require.Equal(f, open.Cabinet, run.Cabinet())
			require.Equal(f, open.Group, run.Group())
			require.Equal(f, int64(2), run.BacklogAfter(open.Count).Events, "in all groups")
			found.DocumentTypes[0] = documentType("other")

			found, _, err = f.Bundles.Find(f.ctx, f.actor, other.ID)
			require.NoError(f, err)
			f.requireSameBundle(other.Bundle, found)
		}
		f.acknowledge(open)
	}},

	{name: "the run of a bundle that was found opens nothing", test: func(f *fixture) {
		f.saveNew(2)
		open := f.peek()
		_, run, err := f.Bundles.Find(f.ctx, f.actor, open.ID)
		require.NoError(f, err)
		_, err = f.openBundle(NewBundleID(), run, 1)
		f.wantRefusal(domain.Conflict, err)
	}},

	{name: "changes of the caller to a returned bundle have no effect", test: func(f *fixture) {
		f.saveNew(1)
		added := f.peek()
		want := added.DocumentTypes[0]
		other := documentType("other")
		added.DocumentTypes[0] = other
		f.readNext().Open.DocumentTypes[0] = other
		require.Equal(f, want, f.readNext().Open.DocumentTypes[0])
	}},

	{name: "a time of opening that the caller sets is kept", test: func(f *fixture) {
		f.saveNew(1)
		next := f.readNext()
		b, _, err := MakeBundle(f.ctx, next.Run)
		require.NoError(f, err)
		b.Opened = time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)
		added, err := f.Bundles.Add(f.ctx, b, next.Run)
		require.NoError(f, err)
		f.requireSameBundle(b, added)
		f.requireSameBundle(b, *f.readNext().Open)
	}},

	{name: "a bundle takes the first events of its run and leaves the others", capacity: 3, test: func(f *fixture) {
		events := f.saveNew(9)
		for _, n := range []int{1, 4, 3} {
			b, err := f.openBundle(NewBundleID(), f.readNext().Run, n)
			require.NoError(f, err)
			f.wantSame(events[:n], f.readRange(f.readNext().Run))
			f.acknowledge(PeekedBundle{Bundle: b})
			events = events[n:]
		}
		f.wantDequeue(events...)
		f.wantNothing()
	}},

	{name: "a bundle takes no more events than its run has yielded", test: func(f *fixture) {
		f.saveNew(5)
		events := f.readRange(f.readNext().Run)
		run := f.readNext().Run
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
			f.wantRefusal(domain.Invalid, err)
		}
		_, err := f.Bundles.Add(f.ctx, bundleOf(NewBundleID(), run, events[:2]), run)
		require.NoError(f, err)
	}},

	{name: "events that are saved meanwhile do not prevent Add", test: func(f *fixture) {
		events := f.saveNew(2)
		run := f.readNext().Run
		later := f.saveNew(2)
		b, err := f.openBundle(NewBundleID(), run, 2)
		require.NoError(f, err)
		f.wantSame(events, f.readRange(f.readNext().Run))
		f.acknowledge(PeekedBundle{Bundle: b})
		f.wantDequeue(later...)
	}},

	{name: "a second bundle in a group is refused", test: func(f *fixture) {
		f.saveNew(2)
		run := f.readNext().Run
		first, err := f.openBundle(NewBundleID(), run, 1)
		require.NoError(f, err)
		second := NewBundleID()
		_, err = f.openBundle(second, run, 1)
		f.wantRefusal(domain.Conflict, err)
		_, err = f.openBundle(second, f.readNext().Run, 1) // the run of the open bundle cannot be used to open a second bundle
		f.wantRefusal(domain.Conflict, err)
		f.requireClosed(second)
		f.requireSameBundle(first, *f.readNext().Open)
	}},

	{name: "origins of one group share its open bundle, those of others do not", test: func(f *fixture) {
		groups := domain.DefaultGroups()
		for _, a := range groups.Origins() {
			for _, b := range groups.Origins() {
				f := f.withActor(NewActor())
				f.saveNew(1, WithOrigin(a))
				f.saveNew(1, WithOrigin(b), WithContentType("other"))
				groupA, _ := groups.GroupOf(a)
				groupB, _ := groups.GroupOf(b)
				runA, runB := f.readNext(groupA).Run, f.readNext(groupB).Run
				first, err := f.openBundle(NewBundleID(), runA, 1)
				require.NoError(f, err)
				second, err := f.openBundle(NewBundleID(), runB, 1)
				if groupA != groupB {
					require.NoError(f, err, "%s and %s", a, b)
					require.Equal(f, second.ID, f.readNext(groupB).Open.ID)
				} else {
					f.wantRefusal(domain.Conflict, err)
					require.Equal(f, first.ID, f.readNext(groupB).Open.ID, "%s and %s", a, b)
				}
			}
		}
	}},

	{name: "an id that is open or was ever acknowledged is in use, in every group", test: func(f *fixture) {
		f.saveNew(3)
		f.saveNew(1, WithOrigin(domain.Charges))
		used := f.peek(TimeSeries)
		for range 2 { // first while the bundle is open, then after it was acknowledged
			_, err := f.openBundle(used.ID, f.readNext(MasterData).Run, 1)
			f.requireIDInUse(err)
			_, err = f.openBundle(used.ID, f.readNext(TimeSeries).Run, 1)
			f.requireIDInUse(err)
			if f.readNext(TimeSeries).Open != nil {
				f.acknowledge(used)
				f.saveNew(3)
			}
		}
		require.Nil(f, f.readNext().Open)
	}},

	{name: "an id in use is reported even if the race is lost, too", test: func(f *fixture) {
		f.saveNew(1)
		used := f.peek()
		f.acknowledge(used)
		f.saveNew(2)
		run := f.readNext().Run
		f.peek()
		_, err := f.openBundle(used.ID, run, 1)
		f.requireIDInUse(err)
	}},

	{name: "a repeated Add opens no other bundle", test: func(f *fixture) {
		events := f.saveNew(3)
		run := f.readNext().Run
		b, err := f.openBundle(NewBundleID(), run, 2)
		require.NoError(f, err)
		again, err := f.openBundle(b.ID, run, 2)
		if err == nil { // the store recognizes the repeated call
			f.requireSameBundle(b, again)
		} else {
			require.Equal(f, domain.Conflict, domain.KindOf(err))
		}
		f.requireSameBundle(b, *f.readNext().Open)
		f.acknowledge(PeekedBundle{Bundle: b})
		_, err = f.openBundle(b.ID, run, 2)
		require.Equal(f, domain.Conflict, domain.KindOf(err))
		f.wantDequeue(events[2])
		f.wantNothing()
	}},

	{name: "a refused id is free", test: func(f *fixture) {
		f.saveNew(1)
		run := f.readNext().Run
		winner := f.peek()
		id := NewBundleID()
		_, err := f.openBundle(id, run, 1)
		f.wantRefusal(domain.Conflict, err)
		f.acknowledge(winner)
		f.saveNew(1)
		_, err = f.openBundle(id, f.readNext().Run, 1)
		require.NoError(f, err)
	}},

	{name: "two recipients may have bundles with the same id", test: func(f *fixture) {
		other := f.withActor(NewActor())
		f.saveNew(1)
		theirs := other.saveNew(1)
		mine := f.peek()
		_, err := other.openBundle(mine.ID, other.readNext().Run, 1)
		require.NoError(f, err)
		f.acknowledge(mine)
		f.requireClosed(mine.ID)
		require.Equal(f, mine.ID, other.readNext().Open.ID)
		other.wantDequeue(theirs...)
	}},

	{name: "a run from before an Acknowledge opens nothing", test: func(f *fixture) {
		f.saveNew(1)
		stale := f.readNext().Run
		f.acknowledge(f.peek())
		_, err := f.openBundle(NewBundleID(), stale, 1)
		f.wantRefusal(domain.Conflict, err)
		f.wantNothing()
	}},

	{name: "the run of an open bundle opens nothing, not even after its Acknowledge", test: func(f *fixture) {
		f.saveNew(2)
		open := f.peek()
		run := f.readNext().Run
		_, err := f.openBundle(NewBundleID(), run, 2)
		f.wantRefusal(domain.Conflict, err)
		f.acknowledge(open)
		_, err = f.Bundles.Add(f.ctx, bundleOf(NewBundleID(), run, open.Events), run)
		f.wantRefusal(domain.Conflict, err)
		f.wantNothing()
	}},

	{name: "a run from before an Acknowledge in another cabinet of the group opens nothing", test: func(f *fixture) {
		first := f.saveNew(1, WithOrigin(domain.Charges))
		second := f.saveNew(2, WithOrigin(domain.MarketRoles))
		stale := f.readNext().Run
		f.wantDequeue(first...)
		_, err := f.openBundle(NewBundleID(), stale, 1)
		f.wantRefusal(domain.Conflict, err)
		f.wantDequeue(second...)
	}},

	{name: "changes in other groups, or of other recipients, do not outdate a run", test: func(f *fixture) {
		f.saveNew(1)
		run := f.readNext(TimeSeries).Run
		f.saveNew(1, WithOrigin(domain.Charges))
		f.acknowledge(f.peek(MasterData))
		other := f.withActor(NewActor())
		other.saveNew(1)
		other.acknowledge(other.peek())
		_, err := f.openBundle(NewBundleID(), run, 1)
		require.NoError(f, err)
	}},

	{name: "acknowledged events are not returned again", test: func(f *fixture) {
		events := f.saveNew(5)
		b, err := f.openBundle(NewBundleID(), f.readNext().Run, 1)
		require.NoError(f, err)
		f.acknowledge(PeekedBundle{Bundle: b})
		f.wantDequeue(events[1:]...)
		f.wantNothing()
	}},

	{name: "unknown, foreign and closed bundles are NotFound, with the same error", test: func(f *fixture) {
		f.saveNew(1)
		closed := f.peek()
		f.acknowledge(closed)
		other := f.withActor(NewActor())
		other.saveNew(1)
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
				f.wantRefusal(domain.NotFound, err)
				texts[strings.ReplaceAll(err.Error(), id.String(), "ID")] = true
			}
			require.Len(f, texts, 1, "error texts of %s but for the id: %v", name, texts)
		}
		other.acknowledge(foreign)
	}},

	{name: "with an ended context nothing is opened or closed", test: func(f *fixture) {
		f.saveNew(1)
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		next := f.readNext()
		b, _, err := MakeBundle(f.ctx, next.Run)
		require.NoError(f, err)
		_, err = f.Bundles.Add(ended, b, next.Run)
		require.ErrorIs(f, err, context.Canceled)
		require.Nil(f, f.readNext().Open)
		open := f.peek()
		_, err = f.Bundles.Acknowledge(ended, f.actor, open.ID)
		require.ErrorIs(f, err, context.Canceled)
		_, _, err = f.Bundles.Find(ended, f.actor, open.ID)
		require.ErrorIs(f, err, context.Canceled)
		f.acknowledge(open)
	}},
}
