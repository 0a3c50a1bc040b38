package repositorytest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

var orderingRules = []rule{
	{name: "by cabinet, a bundle overtakes older events of other cabinets", test: func(f *fixture) {
		a := f.stored(1, Typed("a"))
		b := f.stored(1, Typed("b"))
		c := f.stored(1, Typed("a"))
		f.dequeues(a[0], c[0])
		f.dequeues(b...)
	}},

	{name: "by recipient, a bundle ends where an older event waits in another cabinet", ordering: domain.ByRecipient, test: func(f *fixture) {
		one := f.stored(3, Typed("a"))
		two := f.stored(2, Typed("b"))
		three := f.stored(2, Typed("a"))
		four := f.stored(1, Typed("b"))
		f.dequeues(one...)
		f.dequeues(two...)
		f.dequeues(three...)
		f.dequeues(four...)
		f.nothing()
	}},

	{name: "by recipient, the order is that of the events of one Save, too", ordering: domain.ByRecipient, capacity: 2, test: func(f *fixture) {
		var events []domain.Event
		for i := range 12 {
			events = append(events, f.event(Typed(fmt.Sprint(i/5%2))))
		}
		f.save(events...)
		f.dequeues(events[:5]...)
		f.dequeues(events[5:10]...)
		f.dequeues(events[10:]...)
	}},

	{name: "by recipient, other origins of the group count, other groups and recipients do not", ordering: domain.ByRecipient, test: func(f *fixture) {
		charges := f.stored(1, From(domain.Charges))
		series := f.stored(1)
		other := f.withActor(NewActor())
		theirs := other.stored(1, From(domain.MarketRoles))
		more := f.stored(1, From(domain.Charges))
		moreSeries := f.stored(1)
		roles := f.stored(1, From(domain.MarketRoles))
		last := f.stored(1, From(domain.Charges))
		f.same(append(charges, more...), f.peek(MasterData).Events)
		f.acknowledge(f.peek(MasterData))
		f.dequeues(append(series, moreSeries...)...)
		f.dequeues(roles...)
		f.dequeues(last...)
		other.dequeues(theirs...)
	}},

	{name: "by recipient, an event saved later does not make a bundle any longer", ordering: domain.ByRecipient, test: func(f *fixture) {
		a := f.stored(2, Typed("a"))
		b := f.stored(1, Typed("b"))
		run := f.next().Run
		later := f.stored(2, Typed("a"))
		f.same(a, f.read(run))
		bundle, err := f.add(NewBundleID(), run, 2)
		require.NoError(f, err)
		f.acknowledge(Peeked{Bundle: bundle})
		f.dequeues(b...)
		f.dequeues(later...)
	}},

	{name: "by recipient, what is acknowledged elsewhere no longer ends a bundle", ordering: domain.ByRecipient, test: func(f *fixture) {
		for round := range 4 {
			a := f.stored(1, Typed("a"))
			b := f.stored(1, Typed("b"))
			f.dequeues(a...)
			more := f.stored(2, Typed(fmt.Sprint("c", round)))
			f.dequeues(b...)
			f.dequeues(more...)
		}
		all := f.stored(7, Typed("a"))
		f.dequeues(all...)
	}},

	{name: "by recipient, six drawers are still the most", ordering: domain.ByRecipient, capacity: 3, test: func(f *fixture) {
		a := f.stored(40, Typed("a"))
		b := f.stored(2, Typed("b"))
		for len(a) > 0 {
			n := min(len(a), 18)
			f.dequeues(a[:n]...)
			a = a[n:]
		}
		f.dequeues(b...)
	}},

	{name: "by recipient, all bundles of a group are its events in order, whoever saves meanwhile", ordering: domain.ByRecipient, capacity: 4, test: func(f *fixture) {
		const savers, saves = 3, 12
		var saving sync.WaitGroup
		failed := make(chan error, savers)
		for s := range savers {
			saving.Go(func() {
				for i := range saves {
					var events []domain.Event
					for n := range 1 + i%3 {
						events = append(events, f.event(Typed(fmt.Sprint((s+i+n)%4))))
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
