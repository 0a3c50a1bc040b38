package repositorytest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// readNotices returns the notices in the outbox, and checks the properties that all results must have.
func (f *fixture) readNotices() []domain.Notice {
	f.Helper()
	notices, err := f.Outbox.Notices(f.ctx, f.actor)
	require.NoError(f, err)
	type sequence struct {
		group domain.Group
		to    domain.Audience
	}
	last := make(map[sequence]int64)
	for _, n := range notices {
		require.Equal(f, f.actor, n.Recipient)
		require.False(f, n.Since.IsZero())
		if n.Audience == domain.ForWatchersOfRemoval {
			require.Zero(f, n.Number)
			continue
		}
		require.Greater(f, n.Number, last[sequence{n.Group, n.Audience}])
		last[sequence{n.Group, n.Audience}] = n.Number
	}
	return notices
}

// dequeueAnswered opens a bundle in content mode request, stores its content and dequeues it.
func (f *fixture) dequeueAnswered(groups ...domain.Group) PeekedBundle {
	f.Helper()
	b := f.answerBundle(f.openOnRequest(groups...), "made")
	f.acknowledge(b)
	return b
}

// requireNoticesOf requires that notices are about these bundles, in this order.
func (f *fixture) requireNoticesOf(notices []domain.Notice, bundles ...PeekedBundle) {
	f.Helper()
	require.Len(f, notices, len(bundles))
	for i, n := range notices {
		b := bundles[i]
		require.Equal(f, b.ID, n.Bundle, "notice %d", i)
		require.Equal(f, b.Group, n.Group)
		require.Equal(f, b.Cabinet.Origin, n.Origin)
		switch n.Audience {
		case domain.ForDomain:
			require.Equal(f, b.List, n.List)
		case domain.ForSubscribers:
			require.Equal(f, b.Count, n.Events)
		case domain.ForWatchers, domain.ForWatchersOfRemoval:
			require.Positive(f, n.Version)
		}
	}
}

// ofGroup returns the notices of a group.
func ofGroup(group domain.Group, notices []domain.Notice) []domain.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n domain.Notice) bool { return n.Group != group })
}

func (f *fixture) confirmNotice(n domain.Notice) {
	f.Helper()
	require.NoError(f, f.Outbox.Delivered(f.ctx, n))
}

// isWaiting reports whether Outbox.Waiting, with the given time, returns the recipient of the
// fixture.
func (f *fixture) isWaiting(before time.Time) bool {
	f.Helper()
	waiting, err := f.Outbox.Waiting(f.ctx, before, 10_000)
	require.NoError(f, err)
	return slices.Contains(waiting, f.actor)
}

var never = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

var outboxRules = []contractRule{
	{name: "the Dequeue of a bundle on request writes a notice", test: func(f *fixture) {
		require.Empty(f, f.readNotices())
		f.saveNew(2, WithOrigin(domain.MarketRoles))
		b := f.dequeueAnswered()
		f.requireNoticesOf(f.readNotices(), b)
		f.requireNoticesOf(f.readNotices(), b) // a notice remains until it is delivered
		f.confirmNotice(f.readNotices()[0])
		require.Empty(f, f.readNotices())
	}},

	{name: "other bundles, and refused calls, write no notice", test: func(f *fixture) {
		f.saveNew(1)
		f.acknowledge(f.peek())
		f.saveNew(1)
		inline, err := Peek(f.ctx, f.Stores, f.actor, AllGroups, domain.BundleID{}, func(b *domain.Bundle) { b.Content = domain.Inline })
		require.NoError(f, err)
		f.acknowledge(inline)
		f.saveNew(1)
		b := f.openOnRequest()
		f.wantUnanswered(b)
		f.requireClosed(NewBundleID())
		require.Empty(f, f.readNotices())
		f.acknowledge(f.answerBundle(b, "made"))
		f.requireClosed(b.ID)
		f.requireNoticesOf(f.readNotices(), b)
	}},

	{name: "an operator's Skip and Release write no notice", test: func(f *fixture) {
		f.saveNew(1)
		b := f.answerBundle(f.openOnRequest(), "made")
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, b.ID, because))
		b = f.answerBundle(f.openOnRequest(), "made")
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, b.ID, because))
		require.Empty(f, f.readNotices())
		_, err := f.Admin.Replay(f.ctx, f.actor, b.Group, because)
		require.NoError(f, err)
		require.Empty(f, f.readNotices())
	}},

	{name: "the notices of a group are in the order in which its bundles were closed", test: func(f *fixture) {
		var bundles []PeekedBundle
		for i := range 12 { // more than nine, so that the test fails if numbers are sorted as text
			f.saveNew(1, WithOrigin([]domain.Origin{domain.Charges, domain.MarketRoles, domain.MeteringPoints}[i%3]))
			bundles = append(bundles, f.dequeueAnswered())
		}
		f.requireNoticesOf(f.readNotices(), bundles...)
		for i := range bundles {
			f.confirmNotice(f.readNotices()[0])
			f.requireNoticesOf(f.readNotices(), bundles[i+1:]...)
		}
	}},

	{name: "groups have notices of their own", test: func(f *fixture) {
		var series, master []PeekedBundle
		for range 3 {
			f.saveNew(1)
			f.saveNew(1, WithOrigin(domain.Charges))
			series = append(series, f.dequeueAnswered(TimeSeries))
			master = append(master, f.dequeueAnswered(MasterData))
		}
		f.requireNoticesOf(ofGroup(TimeSeries, f.readNotices()), series...)
		f.requireNoticesOf(ofGroup(MasterData, f.readNotices()), master...)
		f.confirmNotice(ofGroup(TimeSeries, f.readNotices())[0])
		f.requireNoticesOf(ofGroup(TimeSeries, f.readNotices()), series[1:]...)
		f.requireNoticesOf(ofGroup(MasterData, f.readNotices()), master...)
	}},

	{name: "recipients have notices of their own", test: func(f *fixture) {
		other := f.withActor(NewActor())
		f.saveNew(1)
		other.saveNew(1)
		mine, theirs := f.dequeueAnswered(), other.dequeueAnswered()
		f.requireNoticesOf(f.readNotices(), mine)
		other.requireNoticesOf(other.readNotices(), theirs)
		f.confirmNotice(f.readNotices()[0])
		require.Empty(f, f.readNotices())
		other.requireNoticesOf(other.readNotices(), theirs)
	}},

	{name: "a missing notice can be removed", test: func(f *fixture) {
		f.saveNew(1)
		f.saveNew(1, WithOrigin(domain.Charges))
		first := f.dequeueAnswered(TimeSeries)
		second := f.dequeueAnswered(MasterData)
		n := ofGroup(TimeSeries, f.readNotices())[0]
		for range 3 {
			f.confirmNotice(n)
			f.requireNoticesOf(f.readNotices(), second)
		}
		f.withActor(NewActor()).confirmNotice(domain.Notice{Recipient: NewActor(), Group: first.Group, Bundle: first.ID, Number: n.Number})
		f.requireNoticesOf(f.readNotices(), second)
	}},

	{name: "a bundle that is replayed and dequeued again has another notice, after the first", test: func(f *fixture) {
		f.saveNew(1)
		b := f.dequeueAnswered()
		_, err := f.Admin.Replay(f.ctx, f.actor, b.Group, because)
		require.NoError(f, err)
		f.requireNoticesOf(f.readNotices(), b)
		f.acknowledge(b)
		f.requireNoticesOf(f.readNotices(), b, b)
		f.saveNew(1)
		later := f.dequeueAnswered()
		f.requireNoticesOf(f.readNotices(), b, b, later)
	}},

	{name: "a long outbox is emptied in order, and one group does not hide another", test: func(f *fixture) {
		bundles := make(map[domain.Group][]PeekedBundle)
		for _, part := range []struct {
			origin domain.Origin
			many   int
		}{{domain.Aggregations, 2}, {domain.Charges, 120}, {domain.TimeSeries, 2}} {
			f.saveNew(part.many, WithOrigin(part.origin), WithoutBundling)
			for range part.many {
				b := f.dequeueAnswered()
				bundles[b.Group] = append(bundles[b.Group], b)
			}
		}
		for _, group := range AllGroups {
			require.NotEmpty(f, ofGroup(group, f.readNotices()), "notices of %s", group)
		}
		drained, err := DrainNotices(f.ctx, f.Stores, f.actor)
		require.NoError(f, err)
		for _, group := range AllGroups {
			f.requireNoticesOf(ofGroup(group, drained), bundles[group]...)
		}
	}},

	{name: "of concurrent Acknowledges one writes a notice", test: func(f *fixture) {
		for range 5 {
			f.saveNew(1)
			b := f.answerBundle(f.openOnRequest(), "made")
			f.runTogether(5, func(int) error {
				_, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
				if domain.KindOf(err) == domain.NotFound {
					return nil
				}
				return err
			})
			f.requireNoticesOf(f.readNotices(), b)
			f.confirmNotice(f.readNotices()[0])
		}
	}},

	{name: "concurrent relays empty the outbox and miss nothing", test: func(f *fixture) {
		var want []domain.BundleID
		for range 20 {
			f.saveNew(1)
			want = append(want, f.dequeueAnswered().ID)
		}
		var told [3][]domain.BundleID
		f.runTogether(len(told), func(i int) error {
			notices, err := DrainNotices(f.ctx, f.Stores, f.actor)
			for _, n := range notices {
				if !slices.Contains(told[i], n.Bundle) {
					told[i] = append(told[i], n.Bundle)
				}
			}
			return err
		})
		require.Empty(f, f.readNotices())
		union := make(map[domain.BundleID]bool)
		for _, ids := range told {
			at := -1
			for _, id := range ids {
				union[id] = true
				require.Greater(f, slices.Index(want, id), at, "in order, but for what comes once more")
				at = slices.Index(want, id)
			}
		}
		require.Len(f, union, len(want))
	}},

	{name: "recipients with notices from before a time are found", test: func(f *fixture) {
		require.False(f, f.isWaiting(never))
		f.saveNew(2, WithoutBundling)
		f.dequeueAnswered()
		f.dequeueAnswered()
		n := f.readNotices()
		require.True(f, f.isWaiting(never))
		require.True(f, f.isWaiting(n[0].Since.Add(time.Millisecond)))
		require.False(f, f.isWaiting(n[0].Since), "it is not from before that")
		require.False(f, f.isWaiting(n[1].Since.Add(-repository.MaxClockAhead)))
		require.True(f, f.isWaiting(n[0].Since.Add(-repository.MaxClockAhead-time.Millisecond)), "it is from the future")
		f.confirmNotice(n[0])
		require.False(f, f.isWaiting(n[0].Since.Add(time.Millisecond)))
		require.True(f, f.isWaiting(n[1].Since.Add(time.Millisecond)))
		f.confirmNotice(n[1])
		require.False(f, f.isWaiting(never))
	}},

	{name: "up to limit waiting recipients are returned, each once", test: func(f *fixture) {
		for range 3 {
			f := f.withActor(NewActor())
			f.saveNew(3, WithoutBundling)
			for range 3 {
				f.dequeueAnswered()
			}
		}
		for most := range 3 {
			waiting, err := f.Outbox.Waiting(f.ctx, never, most)
			require.NoError(f, err)
			require.Len(f, waiting, most)
			slices.SortFunc(waiting, func(a, b domain.ActorID) int { return strings.Compare(a.String(), b.String()) })
			require.Len(f, slices.Compact(waiting), most)
		}
	}},

	{name: "with an ended context the outbox stays as it is", test: func(f *fixture) {
		f.saveNew(1)
		b := f.dequeueAnswered()
		n := f.readNotices()[0]
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.Outbox.Notices(ended, f.actor)
		require.ErrorIs(f, err, context.Canceled)
		require.ErrorIs(f, f.Outbox.Delivered(ended, n), context.Canceled)
		_, err = f.Outbox.Waiting(ended, never, 1)
		require.ErrorIs(f, err, context.Canceled)
		f.requireNoticesOf(f.readNotices(), b)
	}},
}
