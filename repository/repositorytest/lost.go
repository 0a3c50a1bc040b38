package repositorytest

import (
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// lostSave is how many events the Saves have of which one is lost: more than stay in a head.
const lostSave = 201

// lostRules are about stores that have lost events.
var lostRules = []rule{
	{name: "lost events stop their cabinet alone", test: func(f *fixture) {
		lost := f.stored(lostSave)
		f.stored(1)
		f.Lose(lost[0].Cabinet(), 1, lostSave)
		other := f.stored(1, Typed("other"))
		charges := f.stored(1, From(domain.Charges))
		require.Equal(f, repository.Saved{Duplicates: 1}, tidy(f.save(other...)))
		f.dequeues(other...)
		f.dequeues(charges...)
		_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
		f.refuses(domain.Damaged, err)
		f.dequeues(f.stored(1, Typed("other"))...)
	}},

	{name: "lost events are not overtaken in their group where the order is by recipient", ordering: domain.ByRecipient, test: func(f *fixture) {
		lost := f.stored(lostSave)
		f.Lose(lost[0].Cabinet(), 1, lostSave)
		f.stored(1, Typed("other"))
		f.dequeues(f.stored(1, From(domain.Charges))...)
		_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
		f.refuses(domain.Damaged, err)
	}},

	{name: "an operator abandons what is lost, up to the next event", test: func(f *fixture) {
		before, lost, after := f.stored(2), f.stored(lostSave), f.stored(2)
		cabinet := lost[0].Cabinet()
		f.Lose(cabinet, 3, lostSave+2)
		f.dequeues(before...)
		loss, err := f.Operations.Abandon(f.ctx, cabinet, because)
		require.NoError(f, err)
		require.Equal(f, cabinet, loss.Cabinet)
		require.EqualValues(f, lostSave, loss.Events)
		require.EqualValues(f, 3, loss.First)
		require.EqualValues(f, lostSave+2, loss.Last)
		records, err := f.Operations.Records(f.ctx, f.actor, 10)
		require.NoError(f, err)
		require.Len(f, records, 1)
		require.Equal(f, "abandon", records[0].What)
		require.Equal(f, because, records[0].Order)
		require.Equal(f, &loss, records[0].Lost)
		_, err = f.Operations.Replay(f.ctx, f.actor, TimeSeries, because)
		f.refuses(domain.NotFound, err)
		f.dequeues(after...)
		require.Equal(f, repository.Saved{Accepted: 1}, tidy(f.save(lost[7])))
		f.dequeues(lost[7])
		f.nothing()
	}},

	{name: "an operator abandons what is lost at the end of a cabinet", test: func(f *fixture) {
		lost := f.stored(lostSave)
		f.Lose(lost[0].Cabinet(), 1, lostSave)
		loss, err := f.Operations.Abandon(f.ctx, lost[0].Cabinet(), because)
		require.NoError(f, err)
		require.EqualValues(f, lostSave, loss.Events)
		f.nothing()
		f.dequeues(f.stored(3)...)
		f.nothing()
	}},

	{name: "nothing is abandoned that can be read", test: func(f *fixture) {
		unknown := f.event()
		_, err := f.Operations.Abandon(f.ctx, unknown.Cabinet(), because)
		f.refuses(domain.NotFound, err)
		events := f.stored(lostSave)
		f.stored(1, Typed("other"))
		cabinet := events[0].Cabinet()
		_, err = f.Operations.Abandon(f.ctx, cabinet, because)
		f.refuses(domain.Conflict, err)
		_, err = f.Operations.Abandon(f.ctx, cabinet, repository.Order{})
		f.refuses(domain.Invalid, err)
		open := f.peek()
		f.Lose(cabinet, 1, lostSave)
		_, err = f.Operations.Abandon(f.ctx, cabinet, because)
		f.refuses(domain.Conflict, err)
		require.NoError(f, f.Operations.Skip(f.ctx, f.actor, open.ID, because))
		_, err = f.Operations.Abandon(f.ctx, cabinet, because)
		f.refuses(domain.NotFound, err)
		records, err := f.Operations.Records(f.ctx, f.actor, 10)
		require.NoError(f, err)
		require.Len(f, records, 1)
	}},
}
