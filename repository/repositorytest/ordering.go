package repositorytest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

var orderingRules = []contractRule{
	{name: "by cabinet, a bundle overtakes older events of other cabinets", test: func(f *fixture) {
		a := f.saveNew(1, WithContentType("a"))
		b := f.saveNew(1, WithContentType("b"))
		c := f.saveNew(1, WithContentType("a"))
		f.wantDequeue(a[0], c[0])
		f.wantDequeue(b...)
	}},

	{name: "by recipient, a bundle ends where an older event waits in another cabinet", ordering: domain.ByRecipient, test: func(f *fixture) {
		one := f.saveNew(3, WithContentType("a"))
		two := f.saveNew(2, WithContentType("b"))
		three := f.saveNew(2, WithContentType("a"))
		four := f.saveNew(1, WithContentType("b"))
		f.wantDequeue(one...)
		f.wantDequeue(two...)
		f.wantDequeue(three...)
		f.wantDequeue(four...)
		f.wantNothing()
	}},

	{name: "by recipient, the order is that of the events of one Save, too", ordering: domain.ByRecipient, capacity: 2, test: func(f *fixture) {
		var events []domain.Event
		for i := range 12 {
			events = append(events, f.event(WithContentType(fmt.Sprint(i/5%2))))
		}
		f.save(events...)
		f.wantDequeue(events[:5]...)
		f.wantDequeue(events[5:10]...)
		f.wantDequeue(events[10:]...)
	}},

	{name: "by recipient, other origins of the group count, other groups and recipients do not", ordering: domain.ByRecipient, test: func(f *fixture) {
		charges := f.saveNew(1, WithOrigin(domain.Charges))
		series := f.saveNew(1)
		other := f.withActor(NewActor())
		theirs := other.saveNew(1, WithOrigin(domain.MarketRoles))
		more := f.saveNew(1, WithOrigin(domain.Charges))
		moreSeries := f.saveNew(1)
		roles := f.saveNew(1, WithOrigin(domain.MarketRoles))
		last := f.saveNew(1, WithOrigin(domain.Charges))
		f.wantSame(append(charges, more...), f.peek(MasterData).Events)
		f.acknowledge(f.peek(MasterData))
		f.wantDequeue(append(series, moreSeries...)...)
		f.wantDequeue(roles...)
		f.wantDequeue(last...)
		other.wantDequeue(theirs...)
	}},

	{name: "by recipient, an event that is saved later does not extend a bundle", ordering: domain.ByRecipient, test: func(f *fixture) {
		a := f.saveNew(2, WithContentType("a"))
		b := f.saveNew(1, WithContentType("b"))
		run := f.readNext().Run
		later := f.saveNew(2, WithContentType("a"))
		f.wantSame(a, f.readRange(run))
		bundle, err := f.openBundle(NewBundleID(), run, 2)
		require.NoError(f, err)
		f.acknowledge(PeekedBundle{Bundle: bundle})
		f.wantDequeue(b...)
		f.wantDequeue(later...)
	}},

	{name: "by recipient, an acknowledged event of another cabinet no longer ends a bundle", ordering: domain.ByRecipient, test: func(f *fixture) {
		for round := range 4 {
			a := f.saveNew(1, WithContentType("a"))
			b := f.saveNew(1, WithContentType("b"))
			f.wantDequeue(a...)
			more := f.saveNew(2, WithContentType(fmt.Sprint("c", round)))
			f.wantDequeue(b...)
			f.wantDequeue(more...)
		}
		all := f.saveNew(7, WithContentType("a"))
		f.wantDequeue(all...)
	}},

	{name: "by recipient, a bundle also has up to six drawers", ordering: domain.ByRecipient, capacity: 3, test: func(f *fixture) {
		a := f.saveNew(40, WithContentType("a"))
		b := f.saveNew(2, WithContentType("b"))
		for len(a) > 0 {
			n := min(len(a), 18)
			f.wantDequeue(a[:n]...)
			a = a[n:]
		}
		f.wantDequeue(b...)
	}},

	{name: "by recipient, all bundles of a group are its events in order, even with concurrent Saves", ordering: domain.ByRecipient, capacity: 4, test: func(f *fixture) {
		const savers, saves = 3, 12
		var saving sync.WaitGroup
		failed := make(chan error, savers)
		for s := range savers {
			saving.Go(func() {
				for i := range saves {
					var events []domain.Event
					for n := range 1 + i%3 {
						events = append(events, f.event(WithContentType(fmt.Sprint((s+i+n)%4))))
					}
					if _, err := f.Events.Save(f.ctx, f.actor, events); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		bundles := f.drain()
		saving.Wait()
		close(failed)
		require.NoError(f, <-failed)
		bundles = append(bundles, f.drain()...)
		events, last := 0, domain.Sequence(0)
		for _, b := range bundles {
			for _, e := range b.Events {
				require.Greater(f, e.Sequence, last)
				last = e.Sequence
				events++
			}
		}
		require.Equal(f, savers*saves*2, events)
	}},
}
