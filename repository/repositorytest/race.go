package repositorytest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var raceRules = []contractRule{
	{name: "concurrent Saves for one recipient lose, duplicate and reorder nothing", capacity: 7, test: func(f *fixture) {
		var ledger Ledger
		f.runTogether(4, func(saver int) error { return f.saveBatches(&ledger, saver, 12) })
		require.NoError(f, ledger.Check(f.drain()))
		f.wantNothing()
	}},

	{name: "W3 concurrent first Saves into one cabinet all count", capacity: 3, test: func(f *fixture) {
		for range 5 {
			f := f.withActor(NewActor())
			var ledger Ledger
			f.runTogether(6, func(saver int) error {
				events := f.events(2)
				ledger.Saved(saver, events...)
				return f.saveEvents(events...)
			})
			require.NoError(f, ledger.Check(f.drain()))
			f.wantNothing()
		}
	}},

	{name: "W7 concurrent Saves of the same events store each of them once", capacity: 7, test: func(f *fixture) {
		events := f.events(40)
		for i := range events {
			WithContentType(fmt.Sprintf("type-%d", i%3))(&events[i])
		}
		var ledger Ledger
		ledger.Saved(0, events...)
		var accepted, duplicates atomic.Int64
		f.runTogether(5, func(int) error {
			for from := 0; from < len(events); from += 10 {
				saved, err := f.Events.Save(f.ctx, f.actor, events[from:from+10])
				if err != nil || len(saved.Conflicts) != 0 {
					return errors.Join(err, fmt.Errorf("saved: %+v", saved))
				}
				accepted.Add(int64(saved.Accepted))
				duplicates.Add(int64(saved.Duplicates))
			}
			return nil
		})
		require.Equal(f, int64(40), accepted.Load())
		require.Equal(f, int64(160), duplicates.Load())
		require.NoError(f, ledger.Check(f.drain()))
	}},

	{name: "of concurrent Saves of other content under one id exactly one is stored", test: func(f *fixture) {
		id := NewEventID()
		var accepted atomic.Int64
		f.runTogether(6, func(i int) error {
			e := f.event(WithWeight(domain.Weight(1 + i)))
			e.ID = id
			saved, err := f.Events.Save(f.ctx, f.actor, []domain.Event{e})
			if saved.Accepted+len(saved.Conflicts) != 1 {
				return errors.Join(err, fmt.Errorf("saved: %+v", saved))
			}
			accepted.Add(int64(saved.Accepted))
			return err
		})
		require.Equal(f, int64(1), accepted.Load())
		require.Len(f, f.peek().Events, 1)
	}},

	{name: "Peeks that repeat an open bundle fail neither each other nor its Dequeue", test: func(f *fixture) {
		for range 5 {
			f.saveNew(2)
			open := f.peek()
			f.runTogether(8, func(i int) error {
				for range 10 {
					next, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
					switch {
					case errors.Is(err, domain.ErrNoData):
					case err != nil:
						return err
					case next.Open == nil || next.Open.ID != open.ID:
						return fmt.Errorf("a Peek found another bundle than %s", open.ID)
					}
				}
				if i > 0 {
					return nil
				}
				_, err := f.Bundles.Acknowledge(f.ctx, f.actor, open.ID)
				return err
			})
			f.wantNothing()
		}
	}},

	{name: "W5 the events of one Save become visible together, in all their cabinets", capacity: 7, test: func(f *fixture) {
		const size, saves = 6, 25
		var done atomic.Bool
		f.runTogether(3, func(who int) error {
			if who == 0 {
				defer done.Store(true)
				for range saves {
					var events []domain.Event
					for i := range size {
						events = append(events, f.event(WithOrigin(AllOrigins[i%3])))
					}
					if err := f.saveEvents(events...); err != nil {
						return err
					}
				}
				return nil
			}
			for seen := int64(0); !done.Load(); {
				next, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
				if errors.Is(err, domain.ErrNoData) && seen == 0 {
					continue
				}
				if err != nil || next.Waiting%size != 0 || next.Waiting < seen {
					return errors.Join(err, fmt.Errorf("%d wait after %d, want a multiple of %d", next.Waiting, seen, size))
				}
				seen = next.Waiting
			}
			return nil
		})
		require.Equal(f, int64(size*saves), f.readNext().Waiting)
	}},

	{name: "W14 of concurrent Peeks one wins, and the others find its bundle", test: func(f *fixture) {
		for range 5 {
			f := f.withActor(NewActor())
			f.saveNew(1, WithOrigin(domain.Charges))
			f.saveNew(3, WithOrigin(domain.MarketRoles))
			const peekers = 8
			var runs [peekers]repository.Run
			var bundles [peekers]domain.Bundle
			for i := range runs {
				runs[i] = f.readNext(MasterData).Run
				bundles[i] = bundleOf(NewBundleID(), runs[i], f.readRange(runs[i]))
			}
			var won atomic.Int64
			var winner domain.Bundle
			f.runTogether(peekers, func(i int) error {
				added, err := f.Bundles.Add(f.ctx, bundles[i], runs[i])
				switch {
				case err == nil:
					won.Add(1)
					winner = added
				case domain.KindOf(err) != domain.Conflict || errors.Is(err, repository.ErrBundleIDInUse):
					return err
				}
				return nil
			})
			require.Equal(f, int64(1), won.Load())
			for i := range bundles {
				if bundles[i].ID != winner.ID {
					f.requireClosed(bundles[i].ID)
				}
			}
			f.requireSameBundle(winner, *f.readNext().Open)
			require.Len(f, f.readRange(f.readNext().Run), 1)
		}
	}},

	{name: "of concurrent Peeks under one id one wins", test: func(f *fixture) {
		f.saveNew(1)
		f.saveNew(1, WithOrigin(domain.Charges))
		id := NewBundleID()
		runs := []repository.Run{f.readNext(TimeSeries).Run, f.readNext(MasterData).Run}
		bundles := []domain.Bundle{bundleOf(id, runs[0], f.readRange(runs[0])), bundleOf(id, runs[1], f.readRange(runs[1]))}
		var won atomic.Int64
		f.runTogether(2, func(i int) error {
			_, err := f.Bundles.Add(f.ctx, bundles[i], runs[i])
			if errors.Is(err, repository.ErrBundleIDInUse) {
				return nil
			}
			won.Add(1)
			return err
		})
		require.Equal(f, int64(1), won.Load())
	}},

	{name: "W12 of concurrent Acknowledges exactly one succeeds", test: func(f *fixture) {
		for range 5 {
			f.saveNew(2)
			open := f.peek()
			later := f.saveNew(1)
			var succeeded atomic.Int64
			f.runTogether(6, func(int) error {
				_, err := f.Bundles.Acknowledge(f.ctx, f.actor, open.ID)
				if domain.KindOf(err) == domain.NotFound {
					return nil
				}
				succeeded.Add(1)
				return err
			})
			require.Equal(f, int64(1), succeeded.Load())
			f.wantDequeue(later...)
			f.wantNothing()
		}
	}},

	{name: "W5 an event saved while a bundle of its cabinet is acknowledged is neither lost nor repeated", capacity: 3, test: func(f *fixture) {
		var ledger Ledger
		var bundles []PeekedBundle
		first := f.saveNew(1)
		ledger.Saved(0, first...)
		for range 20 {
			open := f.peek()
			bundles = append(bundles, open)
			e := f.event()
			ledger.Saved(0, e)
			f.runTogether(2, func(who int) error {
				if who == 0 {
					return f.saveEvents(e)
				}
				_, err := f.Bundles.Acknowledge(f.ctx, f.actor, open.ID)
				return err
			})
		}
		bundles = append(bundles, f.drain()...)
		require.NoError(f, ledger.Check(bundles))
	}},

	{name: "concurrent savers and actors lose, duplicate and reorder nothing", capacity: 7, test: func(f *fixture) {
		var ledger Ledger
		var mu sync.Mutex
		var bundles []PeekedBundle
		var saving atomic.Int64
		saving.Store(2)
		f.runTogether(4, func(who int) error {
			if who < 2 {
				defer saving.Add(-1)
				return f.saveBatches(&ledger, who, 15)
			}
			for last := false; !last; {
				last = saving.Load() == 0 // after the last Save, drain once more
				drained, err := Drain(f.ctx, f.Stores, f.actor, AllGroups)
				if err != nil {
					return err
				}
				mu.Lock()
				bundles = append(bundles, drained...)
				mu.Unlock()
			}
			return nil
		})
		f.wantNothing()
		require.NoError(f, ledger.Check(inOrder(bundles)))
	}},

	{name: "W19 recipients save, peek and dequeue concurrently without affecting each other", capacity: 7, test: func(f *fixture) {
		f.runTogether(4, func(int) error {
			own := f.withActor(NewActor())
			var ledger Ledger
			if err := own.saveBatches(&ledger, 0, 8); err != nil {
				return err
			}
			drained, err := Drain(own.ctx, own.Stores, own.actor, AllGroups)
			return errors.Join(err, ledger.Check(drained))
		})
	}},
}

// runTogether calls do(0) to do(n-1) concurrently and waits for all of them.
func (f *fixture) runTogether(n int, do func(i int) error) {
	f.Helper()
	start := make(chan struct{})
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	require.NoError(f, errors.Join(errs...))
}

// saveEvents saves new events.
func (f *fixture) saveEvents(events ...domain.Event) error {
	saved, err := f.Events.Save(f.ctx, f.actor, events)
	if err == nil && (saved.Accepted != len(events) || saved.Duplicates+len(saved.Conflicts) != 0) {
		err = fmt.Errorf("saved %d new events: %+v", len(events), saved)
	}
	return err
}

// saveBatches makes several Saves, each of 0 to 5 events in several cabinets.
func (f *fixture) saveBatches(ledger *Ledger, saver, saves int) error {
	for n := range saves {
		var events []domain.Event
		for i := range n % 6 {
			e := f.event(WithOrigin(AllOrigins[(n+i)%len(AllOrigins)]), WithWeight(domain.Weight(1+10_000*(i%2))))
			e.SupportsBundling = n%5 > 0
			events = append(events, e)
		}
		ledger.Saved(saver, events...) // recorded before the Save, because an actor may receive the events before the Save returns
		if err := f.saveEvents(events...); err != nil {
			return fmt.Errorf("saver %d, save %d: %w", saver, n, err)
		}
	}
	return nil
}
