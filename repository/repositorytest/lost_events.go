package repositorytest

import (
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// lostSave is the number of events of a lost Save. It is larger than the number of events that fit in a
// head.
const lostSave = 201

// lostRules are rules about stores that have lost events.
var lostRules = []contractRule{
	{name: "lost events stop only their cabinet", test: func(f *fixture) {
		lost := f.saveNew(lostSave)
		f.saveNew(1)
		f.Lose(lost[0].Cabinet(), 1, lostSave)
		other := f.saveNew(1, WithContentType("other"))
		charges := f.saveNew(1, WithOrigin(domain.Charges))
		require.Equal(f, repository.Saved{Duplicates: 1}, normalizeSaved(f.save(other...)))
		f.wantDequeue(other...)
		f.wantDequeue(charges...)
		_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
		f.wantRefusal(domain.Damaged, err)
		f.wantDequeue(f.saveNew(1, WithContentType("other"))...)
	}},

	{name: "lost events are not overtaken in their group where the order is by recipient", ordering: domain.ByRecipient, test: func(f *fixture) {
		lost := f.saveNew(lostSave)
		f.Lose(lost[0].Cabinet(), 1, lostSave)
		f.saveNew(1, WithContentType("other"))
		f.wantDequeue(f.saveNew(1, WithOrigin(domain.Charges))...)
		_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, AllGroups)
		f.wantRefusal(domain.Damaged, err)
	}},

	{name: "an operator abandons lost events, up to the next event", test: func(f *fixture) {
		before, lost, after := f.saveNew(2), f.saveNew(lostSave), f.saveNew(2)
		cabinet := lost[0].Cabinet()
		f.Lose(cabinet, 3, lostSave+2)
		f.wantDequeue(before...)
		loss, err := f.Admin.Abandon(f.ctx, cabinet, because)
		require.NoError(f, err)
		require.Equal(f, cabinet, loss.Cabinet)
		require.EqualValues(f, lostSave, loss.Events)
		require.EqualValues(f, 3, loss.First)
		require.EqualValues(f, lostSave+2, loss.Last)
		records, err := f.Admin.Records(f.ctx, f.actor, 10)
		require.NoError(f, err)
		require.Len(f, records, 1)
		require.Equal(f, "abandon", records[0].What)
		require.Equal(f, because, records[0].AdminAction)
		require.Equal(f, &loss, records[0].Lost)
		_, err = f.Admin.Replay(f.ctx, f.actor, TimeSeries, because)
		f.wantRefusal(domain.NotFound, err)
		f.wantDequeue(after...)
		require.Equal(f, repository.Saved{Accepted: 1}, normalizeSaved(f.save(lost[7])))
		f.wantDequeue(lost[7])
		f.wantNothing()
	}},

	{name: "an operator abandons lost events at the end of a cabinet", test: func(f *fixture) {
		lost := f.saveNew(lostSave)
		f.Lose(lost[0].Cabinet(), 1, lostSave)
		loss, err := f.Admin.Abandon(f.ctx, lost[0].Cabinet(), because)
		require.NoError(f, err)
		require.EqualValues(f, lostSave, loss.Events)
		f.wantNothing()
		f.wantDequeue(f.saveNew(3)...)
		f.wantNothing()
	}},

	{name: "events that can be read are not abandoned", test: func(f *fixture) {
		unknown := f.event()
		_, err := f.Admin.Abandon(f.ctx, unknown.Cabinet(), because)
		f.wantRefusal(domain.NotFound, err)
		events := f.saveNew(lostSave)
		f.saveNew(1, WithContentType("other"))
		cabinet := events[0].Cabinet()
		_, err = f.Admin.Abandon(f.ctx, cabinet, because)
		f.wantRefusal(domain.Conflict, err)
		_, err = f.Admin.Abandon(f.ctx, cabinet, repository.AdminAction{})
		f.wantRefusal(domain.Invalid, err)
		open := f.peek()
		f.Lose(cabinet, 1, lostSave)
		_, err = f.Admin.Abandon(f.ctx, cabinet, because)
		f.wantRefusal(domain.Conflict, err)
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, open.ID, because))
		_, err = f.Admin.Abandon(f.ctx, cabinet, because)
		f.wantRefusal(domain.NotFound, err)
		records, err := f.Admin.Records(f.ctx, f.actor, 10)
		require.NoError(f, err)
		require.Len(f, records, 1)
	}},
}
