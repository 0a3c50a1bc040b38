package repositorytest

import (
	"fmt"
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// weakRules test that a store does not have the weak points of an earlier message hub. The weak points
// that need two concurrent callers are tested by raceRules.
var weakRules = []contractRule{
	{name: "W1 an exactly full drawer gets no more events, and all of its events are delivered", capacity: 10, test: func(f *fixture) {
		var ledger Ledger
		var bundles []PeekedBundle
		saveOne := func(times int) {
			for range times {
				ledger.Saved(0, f.saveNew(1, WithWeight(domain.MaxBundleWeight/4))...) // four events fill a bundle
			}
		}
		dequeue := func(times int) {
			for range times {
				b := f.peek()
				f.acknowledge(b)
				bundles = append(bundles, b)
			}
		}
		saveOne(35)
		dequeue(3) // 12 events: the first drawer is used up, the second is not
		saveOne(5) // fills the fourth drawer exactly
		dequeue(4)
		saveOne(13)
		bundles = append(bundles, f.drain()...)
		require.NoError(f, ledger.Check(bundles))
	}},

	{name: "W1 a Save that fills a drawer exactly leaves room for the next", capacity: 5, test: func(f *fixture) {
		var all []domain.Event
		for _, n := range []int{5, 5, 1, 4, 5, 2, 8} {
			all = append(all, f.saveNew(n)...)
		}
		f.wantDequeue(all...)
		f.wantDequeue(f.saveNew(5)...)
		f.wantDequeue(f.saveNew(1)...)
		f.wantNothing()
	}},

	{name: "W2 a repeated Save hides neither its events nor later ones", capacity: 4, test: func(f *fixture) {
		events := f.events(11)
		f.save(events[:3]...)
		f.save(events[:6]...)
		require.Equal(f, repository.Saved{Duplicates: 6}, f.save(events[:6]...))
		f.wantDequeue(events[:6]...)
		require.Equal(f, repository.Saved{Accepted: 3, Duplicates: 6}, f.save(events[:9]...))
		f.wantDequeue(events[6:9]...)
		require.Equal(f, repository.Saved{Accepted: 2, Duplicates: 9}, f.save(events...))
		f.wantDequeue(events[9:]...)
		f.wantNothing()
	}},

	{name: "W4 sequence numbers ascend over all cabinets in the order of Saves, and are never reused", capacity: 3, test: func(f *fixture) {
		last := domain.Sequence(0)
		for round := range 4 {
			events := f.events(10)
			for i := range events {
				WithOrigin(AllOrigins[i%3])(&events[i])
			}
			f.save(events[:4]...)
			f.save(events...)
			sequence := make(map[domain.EventID]domain.Sequence)
			for _, b := range f.drain() {
				for _, e := range b.Events {
					sequence[e.ID] = e.Sequence
				}
			}
			for i, e := range events {
				require.Greater(f, sequence[e.ID], last, "round %d, event %d", round, i)
				last = sequence[e.ID]
			}
		}
	}},

	{name: "W6 one invalid event does not delay the others", test: func(f *fixture) {
		known := f.saveNew(1)[0]
		bad := known
		bad.Weight = 77
		good := f.events(4)
		require.Equal(f, repository.Saved{Accepted: 4, Conflicts: []int{2}}, f.save(good[0], good[1], bad, good[2], good[3]))
		f.wantDequeue(append([]domain.Event{known}, good...)...)
		f.wantNothing()
	}},

	{name: "W7 duplicates within one Save are stored once, wherever the drawers end", capacity: 3, test: func(f *fixture) {
		e := f.events(7)
		saved := f.save(e[0], e[1], e[0], e[2], e[2], e[3], e[0], e[4], e[5], e[3], e[6], e[6])
		require.Equal(f, repository.Saved{Accepted: 7, Duplicates: 5}, saved)
		f.wantDequeue(e...)
		f.wantNothing()
	}},

	{name: "W8 a refused Add does not touch the bundle that has the id", test: func(f *fixture) {
		events := f.saveNew(2)
		f.saveNew(5, WithOrigin(domain.Charges))
		run := f.readNext(TimeSeries).Run
		first, err := f.openBundle(NewBundleID(), run, 2)
		require.NoError(f, err)
		_, err = f.openBundle(first.ID, f.readNext(MasterData).Run, 5) // a bundle of other events with the same id
		f.requireIDInUse(err)
		_, err = f.openBundle(first.ID, run, 1) // a bundle of fewer events with the same id
		require.Equal(f, domain.Conflict, domain.KindOf(err))
		f.requireSameBundle(first, *f.readNext().Open)
		f.wantDequeue(events...)
		require.Len(f, f.peek(MasterData).Events, 5)
	}},

	{name: "W9 a bundle that was refused cannot be acknowledged", test: func(f *fixture) {
		events := f.saveNew(2)
		run := f.readNext().Run
		refused := NewBundleID()
		f.peek()
		_, err := f.openBundle(refused, run, 2)
		f.wantRefusal(domain.Conflict, err)
		f.requireClosed(refused)
		f.wantDequeue(events...)
	}},

	{name: "W10 nothing opens an acknowledged bundle again", test: func(f *fixture) {
		f.saveNew(3)
		run := f.readNext().Run
		b, err := f.openBundle(NewBundleID(), run, 2)
		require.NoError(f, err)
		f.acknowledge(PeekedBundle{Bundle: b})
		_, err = f.openBundle(b.ID, run, 2) // a late request to open the same bundle
		require.Equal(f, domain.Conflict, domain.KindOf(err))
		f.requireClosed(b.ID)
		next := f.readNext()
		require.Nil(f, next.Open)
		require.Equal(f, int64(1), next.Waiting)
	}},

	{name: "W11 an event that is sent again keeps its place", capacity: 3, test: func(f *fixture) {
		charges := f.saveNew(2, WithOrigin(domain.Charges))
		series := f.saveNew(2)
		f.save(charges[1], series[0], charges[0])
		f.wantDequeue(charges...)
		later := f.saveNew(1, WithOrigin(domain.Charges))
		f.save(series...)
		f.wantDequeue(series...)
		f.wantDequeue(later...)
	}},

	{name: "W13 a late, repeated Acknowledge changes nothing", capacity: 3, test: func(f *fixture) {
		f.saveNew(2)
		old := f.peek()
		f.acknowledge(old)
		events := f.saveNew(5)
		f.requireClosed(old.ID)
		open := f.requirePeek(events...)
		f.requireClosed(old.ID)
		f.requireSameBundle(open.Bundle, f.requirePeek(events...).Bundle)
		f.acknowledge(open)
		f.requireClosed(old.ID)
		f.requireClosed(open.ID)
		f.wantNothing()
		f.wantDequeue(f.saveNew(1)...)
	}},

	{name: "W15 the values of two fields are not confused, even if one is empty", test: func(f *fixture) {
		for _, c := range [][2]Change{
			{combineChanges(WithContentType("ab"), WithDocumentType("c")), combineChanges(WithContentType("a"), WithDocumentType("bc"))},
			{combineChanges(WithContentType("a"), WithDocumentType("a")), combineChanges(WithContentType("aa"), WithDocumentType("a"))},
			{WithPayload(`null`), WithPayload(`{}`)},
			{WithPayload(`null`), func(*domain.Event) {}},
			{WithoutBundling, func(*domain.Event) {}},
		} {
			one, two := f.event(c[0]), f.event(c[1])
			two.ID = one.ID
			require.Equal(f, repository.Saved{Accepted: 1, Conflicts: []int{1}}, f.save(one, two))
		}
	}},

	{name: "W16 a first event of the maximum weight leaves no room for another", test: func(f *fixture) {
		monster := f.saveNew(1, WithWeight(math.MaxInt64))
		rest := f.saveNew(3, WithWeight(math.MaxInt64/2))
		f.wantDequeue(monster...)
		for _, e := range rest {
			f.wantDequeue(e)
		}
		f.wantNothing()
	}},

	{name: "W18 there is no data only if no event waits", test: func(f *fixture) {
		f.saveNew(2)
		run := f.readNext().Run
		f.peek()
		_, lost := f.openBundle(NewBundleID(), run, 2)
		require.NotErrorIs(f, lost, domain.ErrNoData)
		f.wantRefusal(domain.Conflict, lost)
		_, unknown := f.Bundles.Acknowledge(f.ctx, f.actor, NewBundleID())
		require.NotErrorIs(f, unknown, domain.ErrNoData)
		f.acknowledge(f.peek())
		f.wantNothing()
	}},

	{name: "W23 events without bundling are dequeued one by one, over many drawers", capacity: 3, test: func(f *fixture) {
		events := f.saveNew(50, WithoutBundling)
		for _, e := range events {
			f.wantDequeue(e)
		}
		f.wantNothing()
	}},

	{name: "W24 a bundle of 51,200 events is opened, repeated and acknowledged whole", test: func(f *fixture) {
		var events []domain.Event
		for range 6 {
			events = append(events, f.saveNew(8_534)...) // four more than the limit
		}
		f.requirePeek(events[:51_200]...)
		next := f.readNext()
		require.Equal(f, 51_200, next.Open.Count)
		require.Equal(f, int64(len(events)), next.Waiting)
		f.wantDequeue(events[:51_200]...)
		f.wantDequeue(events[51_200:]...)
		f.wantNothing()
	}},

	{name: "many cabinets of one recipient are independent", capacity: 2, test: func(f *fixture) {
		var ledger Ledger
		for n := range 3 {
			var events []domain.Event
			for i := range 40 {
				events = append(events, f.event(WithContentType(fmt.Sprintf("type-%d", i)), WithOrigin(AllOrigins[i%5])))
			}
			if n == 1 {
				slices.Reverse(events)
			}
			ledger.Saved(0, events...)
			require.NoError(f, f.saveEvents(events...))
		}
		bundles := f.drain()
		require.Len(f, bundles, 40)
		require.NoError(f, ledger.Check(bundles))
		require.True(f, slices.IsSortedFunc(bundles, func(a, b PeekedBundle) int { return int(a.First - b.First) }))
	}},
}

func combineChanges(a, b Change) Change { return func(e *domain.Event) { a(e); b(e) } }
