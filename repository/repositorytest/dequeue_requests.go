package repositorytest

import (
	"crypto/rand"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// NewSubscriptionID returns the id of no other subscription.
func NewSubscriptionID() (id domain.SubscriptionID) {
	rand.Read(id[:])
	return id
}

// requests requests the dequeues of the recipient for a new subscription.
func (f *fixture) requests() domain.SubscriptionID {
	f.Helper()
	id := NewSubscriptionID()
	changed, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, id)
	require.NoError(f, err)
	require.True(f, changed)
	return id
}

func (f *fixture) withdraws(id domain.SubscriptionID) {
	f.Helper()
	require.NoError(f, f.Dequeues.WithdrawDequeues(f.ctx, f.actor, id))
}

// dequeued has a bundle dequeued.
func (f *fixture) dequeued(changes ...Change) Peeked {
	f.Helper()
	f.stored(1, changes...)
	b := f.peek()
	f.acknowledge(b)
	return b
}

// forAudience returns those of notices that are for an audience.
func forAudience(to domain.Audience, notices []domain.Notice) []domain.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n domain.Notice) bool { return n.Audience != to })
}

var dequeueRules = []rule{
	{name: "a Dequeue leaves a notice for subscribers while there is a request", test: func(f *fixture) {
		f.dequeued()
		require.Empty(f, f.notices())
		one := f.requests()
		first := f.dequeued()
		two := f.requests()
		f.withdraws(one)
		second := f.dequeued()
		f.requireNoticesOf(f.notices(), first, second)
		for _, n := range f.notices() {
			require.Equal(f, domain.ForSubscribers, n.Audience)
			f.delivered(n)
		}
		f.withdraws(two)
		f.dequeued()
		require.Empty(f, f.notices())
	}},

	{name: "the caller learns whether a Dequeue has left a notice", test: func(f *fixture) {
		for _, want := range []bool{false, true} {
			f.stored(1)
			closed, err := f.Bundles.Acknowledge(f.ctx, f.actor, f.peek().ID)
			require.NoError(f, err)
			require.Equal(f, want, closed.HasNotice)
			f.requests()
		}
	}},

	{name: "a request before the first Save counts, in every group", test: func(f *fixture) {
		f.requests()
		origins := []domain.Origin{domain.TimeSeries, domain.Charges, domain.Aggregations}
		for _, origin := range origins {
			f.dequeued(From(origin))
		}
		require.Len(f, f.notices(), len(origins))
	}},

	{name: "a request counts for a bundle that is open", test: func(f *fixture) {
		f.stored(1)
		b := f.peek()
		f.requests()
		f.acknowledge(b)
		f.requireNoticesOf(f.notices(), b)
	}},

	{name: "a bundle is told once, however often it is dequeued", test: func(f *fixture) {
		f.requests()
		b := f.dequeued()
		f.notOpen(b.ID)
		f.requireNoticesOf(f.notices(), b)
		f.stored(1)
		open := f.peek()
		f.together(5, func(int) error {
			_, err := f.Bundles.Acknowledge(f.ctx, f.actor, open.ID)
			if domain.KindOf(err) == domain.NotFound {
				return nil
			}
			return err
		})
		f.requireNoticesOf(f.notices(), b, open)
	}},

	{name: "a bundle on request leaves a notice for each audience", test: func(f *fixture) {
		f.requests()
		f.stored(1)
		b := f.confirmed()
		require.Len(f, f.notices(), 2)
		f.requireNoticesOf(forAudience(domain.ForDomain, f.notices()), b)
		f.requireNoticesOf(forAudience(domain.ForSubscribers, f.notices()), b)
		f.delivered(forAudience(domain.ForDomain, f.notices())[0])
		f.requireNoticesOf(f.notices(), b)
		require.Equal(f, domain.ForSubscribers, f.notices()[0].Audience)
	}},

	{name: "an operator's Skip and Release leave none for subscribers, a Dequeue after a Replay does", test: func(f *fixture) {
		f.requests()
		f.stored(1)
		require.NoError(f, f.Operations.Release(f.ctx, f.actor, f.peek().ID, because))
		require.NoError(f, f.Operations.Skip(f.ctx, f.actor, f.peek().ID, because))
		require.Empty(f, f.notices())
		b := f.dequeued()
		_, err := f.Operations.Replay(f.ctx, f.actor, b.Group, because)
		require.NoError(f, err)
		f.acknowledge(b)
		f.requireNoticesOf(f.notices(), b, b)
	}},

	{name: "who waits for subscribers is found, and a long outbox is emptied", test: func(f *fixture) {
		f.requests()
		var bundles []Peeked
		f.stored(120, Alone)
		for range 120 {
			b := f.answer(f.asked(), "made")
			f.acknowledge(b)
			bundles = append(bundles, b)
		}
		require.True(f, f.waits(never))
		require.NotEmpty(f, forAudience(domain.ForDomain, f.notices()), "those of one audience do not hide the others")
		drained, err := DrainNotices(f.ctx, f.Stores, f.actor)
		require.NoError(f, err)
		for _, to := range []domain.Audience{domain.ForDomain, domain.ForSubscribers} {
			f.requireNoticesOf(forAudience(to, drained), bundles...)
		}
		require.False(f, f.waits(never))
	}},

	{name: "recipients have requests of their own", test: func(f *fixture) {
		f.requests()
		other := f.withActor(NewActor())
		other.dequeued()
		require.Empty(f, other.notices())
		other.withdraws(NewSubscriptionID())
		b := f.dequeued()
		f.requireNoticesOf(f.notices(), b)
	}},

	{name: "a request may be repeated, and a withdrawal too", test: func(f *fixture) {
		id := f.requests()
		changed, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, id)
		require.NoError(f, err)
		require.False(f, changed)
		f.withdraws(id)
		f.withdraws(id)
		f.dequeued()
		require.Empty(f, f.notices())
	}},

	{name: "a recipient has as many requests as subscriptions", test: func(f *fixture) {
		var ids []domain.SubscriptionID
		for range domain.MaxSubscriptions {
			ids = append(ids, f.requests())
		}
		_, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, NewSubscriptionID())
		require.ErrorIs(f, err, repository.ErrSubscriptionLimit)
		f.withdraws(ids[7])
		f.requests()
	}},

	{name: "requests at the same time all count, and no Dequeue fails of them", test: func(f *fixture) {
		f.stored(3, Alone)
		ids := []domain.SubscriptionID{NewSubscriptionID(), NewSubscriptionID(), NewSubscriptionID()}
		first := f.peek()
		f.together(4, func(i int) error {
			if i == len(ids) {
				_, err := f.Bundles.Acknowledge(f.ctx, f.actor, first.ID)
				return err
			}
			_, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, ids[i])
			return err
		})
		for _, n := range f.notices() { // of first, or not
			f.delivered(n)
		}
		for _, id := range ids {
			b := f.dequeued()
			f.requireNoticesOf(f.notices(), b)
			f.delivered(f.notices()[0])
			f.withdraws(id)
		}
		f.dequeued()
		require.Empty(f, f.notices())
	}},
}
