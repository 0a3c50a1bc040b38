package repositorytest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var because = repository.AdminAction{Who: "an operator", Why: "a test"}

var operationRules = []contractRule{
	{name: "a released bundle is no longer open, and its events are returned under another id", test: func(f *fixture) {
		events := f.saveNew(3)
		open := f.peek()
		later := f.saveNew(1)
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, open.ID, because))
		f.requireClosed(open.ID)
		f.wantRefusal(domain.NotFound, f.Admin.Release(f.ctx, f.actor, open.ID, because))
		f.wantRefusal(domain.NotFound, f.Admin.Skip(f.ctx, f.actor, open.ID, because))
		again := f.requirePeek(append(events, later...)...)
		require.NotEqual(f, open.ID, again.ID)
		f.acknowledge(again)
		f.wantNothing()
	}},

	{name: "the id of a released bundle stays used", test: func(f *fixture) {
		f.saveNew(1)
		open := f.peek()
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, open.ID, because))
		next := f.readNext()
		whole, _, err := MakeBundle(f.ctx, next.Run)
		require.NoError(f, err)
		whole.ID = open.ID
		_, err = f.Bundles.Add(f.ctx, whole, next.Run)
		require.ErrorIs(f, err, repository.ErrBundleIDInUse)
	}},

	{name: "a skipped bundle is not returned again", capacity: 2, test: func(f *fixture) {
		f.saveNew(3)
		open := f.peek()
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, open.ID, because))
		f.requireClosed(open.ID)
		f.wantNothing()
		f.wantDequeue(f.saveNew(2)...)
		f.wantNothing()
	}},

	{name: "a replayed bundle is returned as it was", capacity: 2, test: func(f *fixture) {
		events := f.saveNew(5)
		first := f.peek()
		f.acknowledge(first)
		later := f.saveNew(3)
		replayed, err := f.Admin.Replay(f.ctx, f.actor, first.Group, because)
		require.NoError(f, err)
		f.requireSameBundle(first.Bundle, replayed)
		again := f.requirePeek(events...)
		f.requireSameBundle(first.Bundle, again.Bundle)
		require.Equal(f, first.Events, again.Events)
		f.acknowledge(again)
		f.wantDequeue(later...)
		f.wantNothing()
	}},

	{name: "replay and release go back bundle by bundle, and forth again in order", capacity: 3, test: func(f *fixture) {
		var events []domain.Event
		var bundles []PeekedBundle
		for _, origin := range []domain.Origin{domain.Charges, domain.MarketRoles, domain.Charges, domain.Charges} {
			events = append(events, f.saveNew(2, WithOrigin(origin), WithoutBundling)...)
		}
		for range events {
			b := f.peek(MasterData)
			f.acknowledge(b)
			bundles = append(bundles, b)
		}
		f.wantNothing()
		for i := len(bundles) - 1; i >= 2; i-- {
			b, err := f.Admin.Replay(f.ctx, f.actor, MasterData, because)
			require.NoError(f, err)
			f.requireSameBundle(bundles[i].Bundle, b)
			_, err = f.Admin.Replay(f.ctx, f.actor, MasterData, because)
			f.wantRefusal(domain.Conflict, err)
			require.NoError(f, f.Admin.Release(f.ctx, f.actor, b.ID, because))
		}
		for _, b := range bundles[2:] {
			again := f.peek()
			require.Equal(f, b.Events, again.Events)
			f.acknowledge(again)
		}
		f.wantNothing()
	}},

	{name: "nothing to replay is NotFound, and groups do not replay each other's", test: func(f *fixture) {
		_, err := f.Admin.Replay(f.ctx, f.actor, TimeSeries, because)
		f.wantRefusal(domain.NotFound, err)
		f.wantDequeue(f.saveNew(1)...)
		_, err = f.Admin.Replay(f.ctx, f.actor, MasterData, because)
		f.wantRefusal(domain.NotFound, err)
		_, err = f.Admin.Replay(f.ctx, f.actor, TimeSeries, because)
		require.NoError(f, err)
	}},

	{name: "a frozen queue accepts events, but returns none until it is thawed", test: func(f *fixture) {
		events := f.saveNew(1)
		open := f.peek()
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because))
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because), "once more")
		later := f.saveNew(1)
		_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
		require.ErrorIs(f, err, repository.ErrFrozen)
		_, err = f.Events.NextUnacknowledged(f.ctx, f.actor, []domain.Group{MasterData})
		require.ErrorIs(f, err, repository.ErrFrozen)
		_, err = f.Bundles.Acknowledge(f.ctx, f.actor, open.ID)
		require.ErrorIs(f, err, repository.ErrFrozen)
		_, _, err = f.Bundles.Find(f.ctx, f.actor, open.ID)
		require.ErrorIs(f, err, repository.ErrFrozen)
		require.Equal(f, domain.Unavailable, domain.KindOf(err))
		other := f.withActor(NewActor())
		other.wantDequeue(other.saveNew(1)...)

		require.NoError(f, f.Admin.Thaw(f.ctx, f.actor, because))
		require.NoError(f, f.Admin.Thaw(f.ctx, f.actor, because), "once more")
		f.requireSameBundle(open.Bundle, f.requirePeek(events...).Bundle)
		f.acknowledge(open)
		f.wantDequeue(later...)
	}},

	{name: "a Peek in flight when the queue is frozen opens nothing", test: func(f *fixture) {
		f.saveNew(1)
		next := f.readNext()
		b, _, err := MakeBundle(f.ctx, next.Run)
		require.NoError(f, err)
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because))
		_, err = f.Bundles.Add(f.ctx, b, next.Run)
		f.wantRefusal(domain.Conflict, err)
	}},

	{name: "freezing or thawing an actor without a mailbox is NotFound and leaves nothing", test: func(f *fixture) {
		f.wantRefusal(domain.NotFound, f.Admin.Freeze(f.ctx, f.actor, because))
		f.wantRefusal(domain.NotFound, f.Admin.Thaw(f.ctx, f.actor, because))
		f.noRecords()
		f.wantDequeue(f.saveNew(1)...)
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because))
	}},

	{name: "orders about a bundle that is not open change nothing", test: func(f *fixture) {
		asks := func(f *fixture) {
			before, err := f.Admin.Inspect(f.ctx, f.actor)
			require.NoError(f, err)
			id := NewBundleID()
			f.requireClosed(id)
			f.wantRefusal(domain.NotFound, f.Admin.Release(f.ctx, f.actor, id, because))
			f.wantRefusal(domain.NotFound, f.Admin.Skip(f.ctx, f.actor, id, because))
			_, err = f.Admin.Replay(f.ctx, f.actor, TimeSeries, because)
			f.wantRefusal(domain.NotFound, err)
			after, err := f.Admin.Inspect(f.ctx, f.actor)
			require.NoError(f, err)
			require.Equal(f, before, after)
			f.noRecords()
		}
		asks(f)
		asks(f.withActor(NewActor()))
		f.saveNew(1)
		asks(f)
	}},

	{name: "every order is recorded, the newest first", test: func(f *fixture) {
		f.saveNew(2)
		open := f.peek()
		orders := []struct {
			what string
			do   func(by repository.AdminAction) error
		}{
			{"freeze", func(by repository.AdminAction) error { return f.Admin.Freeze(f.ctx, f.actor, by) }},
			{"thaw", func(by repository.AdminAction) error { return f.Admin.Thaw(f.ctx, f.actor, by) }},
			{"skip", func(by repository.AdminAction) error { return f.Admin.Skip(f.ctx, f.actor, open.ID, by) }},
			{"replay", func(by repository.AdminAction) error {
				_, err := f.Admin.Replay(f.ctx, f.actor, open.Group, by)
				return err
			}},
			{"release", func(by repository.AdminAction) error { return f.Admin.Release(f.ctx, f.actor, open.ID, by) }},
		}
		for _, o := range orders {
			require.NoError(f, o.do(repository.AdminAction{Who: o.what + "er", Why: "because of " + o.what}))
		}
		records, err := f.Admin.Records(f.ctx, f.actor, 100)
		require.NoError(f, err)
		require.Len(f, records, len(orders))
		for i, r := range records {
			want := orders[len(orders)-1-i].what
			require.Equal(f, want, r.What)
			require.Equal(f, repository.AdminAction{Who: want + "er", Why: "because of " + want}, r.AdminAction)
			require.False(f, r.When.IsZero())
			if want == "freeze" || want == "thaw" {
				require.Zero(f, r.Bundle)
				continue
			}
			require.Equal(f, open.ID, r.Bundle)
			require.Equal(f, open.Group, r.Group)
			require.Equal(f, 2, r.Events)
		}
		two, err := f.Admin.Records(f.ctx, f.actor, 2)
		require.NoError(f, err)
		require.Equal(f, records[:2], two)
		f.withActor(NewActor()).noRecords()
	}},

	{name: "an order without an operator or a reason is Invalid, and a refused order is not recorded", test: func(f *fixture) {
		f.saveNew(1)
		open := f.peek()
		for _, by := range []repository.AdminAction{
			{}, {Who: "w"}, {Why: "w"}, {Who: strings.Repeat("w", 201), Why: "w"}, {Who: "w", Why: strings.Repeat("w", 1001)},
		} {
			f.wantRefusal(domain.Invalid, f.Admin.Release(f.ctx, f.actor, open.ID, by))
			f.wantRefusal(domain.Invalid, f.Admin.Skip(f.ctx, f.actor, open.ID, by))
			f.wantRefusal(domain.Invalid, f.Admin.Freeze(f.ctx, f.actor, by))
			f.wantRefusal(domain.Invalid, f.Admin.Thaw(f.ctx, f.actor, by))
			_, err := f.Admin.Replay(f.ctx, f.actor, open.Group, by)
			f.wantRefusal(domain.Invalid, err)
		}
		f.wantRefusal(domain.NotFound, f.withActor(NewActor()).Admin.Release(f.ctx, NewActor(), open.ID, because))
		f.noRecords()
		long := repository.AdminAction{Who: strings.Repeat("ø", 200), Why: strings.Repeat("å", 1000)}
		require.NoError(f, f.Admin.Thaw(f.ctx, f.actor, long))
		records, err := f.Admin.Records(f.ctx, f.actor, 1)
		require.NoError(f, err)
		require.Equal(f, long, records[0].AdminAction)
		f.acknowledge(open)
	}},

	{name: "a bundle is shown with its events, open or not", capacity: 2, test: func(f *fixture) {
		events := f.saveNew(5)
		open := f.peek()
		f.requireShownBundle(open, repository.BundleOpen, events...)
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because))
		require.True(f, f.requireShownBundle(open, repository.BundleOpen, events...).Frozen)
		require.NoError(f, f.Admin.Thaw(f.ctx, f.actor, because))
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, open.ID, because))
		f.requireShownBundle(open, repository.BundleReleased, events...)
		skipped := f.peek()
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, skipped.ID, because))
		f.requireShownBundle(skipped, repository.BundleSkipped, events...)
		later := f.saveNew(2)
		dequeued := f.peek()
		f.acknowledge(dequeued)
		f.requireShownBundle(dequeued, repository.BundleDequeued, later...)
		require.False(f, f.requireShownBundle(skipped, repository.BundleSkipped, events...).Closed.IsZero())
	}},

	{name: "a look is recorded and changes nothing", test: func(f *fixture) {
		events := f.saveNew(2)
		open := f.peek()
		require.NoError(f, f.Admin.RecordView(f.ctx, f.actor, open.ID, because))
		f.requireSameBundle(open.Bundle, f.requirePeek(events...).Bundle)
		f.acknowledge(open)
		closed := f.requireShownBundle(open, repository.BundleDequeued, events...)
		require.NoError(f, f.Admin.RecordView(f.ctx, f.actor, open.ID, because))
		require.Equal(f, closed, f.requireShownBundle(open, repository.BundleDequeued, events...))
		records, err := f.Admin.Records(f.ctx, f.actor, 10)
		require.NoError(f, err)
		require.Len(f, records, 2)
		for _, r := range records {
			require.Equal(f, "look", r.What)
			require.Equal(f, because, r.AdminAction)
			require.Equal(f, open.ID, r.Bundle)
			require.Equal(f, open.Group, r.Group)
			require.Equal(f, 2, r.Events)
		}
	}},

	{name: "a look without an operator or a reason is Invalid, and a look at a bundle of another actor is NotFound", test: func(f *fixture) {
		f.saveNew(1)
		open := f.peek()
		f.wantRefusal(domain.Invalid, f.Admin.RecordView(f.ctx, f.actor, open.ID, repository.AdminAction{Who: "w"}))
		f.wantRefusal(domain.Invalid, f.Admin.RecordView(f.ctx, f.actor, open.ID, repository.AdminAction{Why: "w"}))
		other := f.withActor(NewActor())
		for _, f := range []*fixture{other, f} {
			id := open.ID
			if f != other {
				id = NewBundleID()
			}
			f.wantRefusal(domain.NotFound, f.Admin.RecordView(f.ctx, f.actor, id, because))
			_, _, err := f.Admin.Bundle(f.ctx, f.actor, id)
			f.wantRefusal(domain.NotFound, err)
			f.noRecords()
		}
	}},

	{name: "an inspection returns the stored state", test: func(f *fixture) {
		f.saveNew(3, WithOrigin(domain.Charges))
		f.saveNew(2)
		f.acknowledge(f.peek(TimeSeries))
		f.saveNew(1)
		open := f.peek(MasterData)
		in, err := f.Admin.Inspect(f.ctx, f.actor)
		require.NoError(f, err)
		require.Equal(f, f.actor, in.Recipient)
		require.False(f, in.Frozen)
		require.EqualValues(f, 6, in.Watermark)
		require.Len(f, in.Cabinets, 2)
		charges, series := in.Cabinets[0], in.Cabinets[1]
		require.Equal(f, domain.Charges, charges.Cabinet.Origin)
		require.EqualValues(f, 3, charges.Received)
		require.Zero(f, charges.Acknowledged)
		require.EqualValues(f, 3, series.Received)
		require.EqualValues(f, 2, series.Acknowledged)
		require.EqualValues(f, 5, series.AcknowledgedThrough)
		require.EqualValues(f, 6, series.Last)
		for _, g := range in.Groups {
			switch g.Group {
			case MasterData:
				f.requireSameBundle(open.Bundle, *g.Open)
				require.EqualValues(f, 3, g.Waiting)
			case TimeSeries:
				require.Nil(f, g.Open)
				require.EqualValues(f, 1, g.Waiting)
			default:
				require.Zero(f, g.Waiting)
			}
		}
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because))
		in, err = f.Admin.Inspect(f.ctx, f.actor)
		require.NoError(f, err)
		require.True(f, in.Frozen)
		nobody, err := f.Admin.Inspect(f.ctx, NewActor())
		require.NoError(f, err)
		require.Empty(f, nobody.Cabinets)
	}},
}

// requireShownBundle requires that Bundle returns a bundle as it was peeked, and returns it.
func (f *fixture) requireShownBundle(want PeekedBundle, state repository.BundleState, events ...domain.Event) repository.FoundBundle {
	f.Helper()
	found, run, err := f.Admin.Bundle(f.ctx, f.actor, want.ID)
	require.NoError(f, err)
	f.requireSameBundle(want.Bundle, found.Bundle)
	require.Equal(f, state, found.State)
	var ids []domain.EventID
	for e, err := range run.Events(f.ctx) {
		require.NoError(f, err)
		ids = append(ids, e.ID)
	}
	var wantIDs []domain.EventID
	for i := range events {
		wantIDs = append(wantIDs, events[i].ID)
	}
	require.Equal(f, wantIDs, ids)
	return found
}

func (f *fixture) noRecords() {
	f.Helper()
	records, err := f.Admin.Records(f.ctx, f.actor, 10)
	require.NoError(f, err)
	require.Empty(f, records)
}
