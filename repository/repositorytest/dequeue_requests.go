package repositorytest

import (
	"crypto/rand"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// NewSubscriptionID returns the id of a subscription that no other test uses.
func NewSubscriptionID() (id domain.SubscriptionID) {
	rand.Read(id[:])
	return id
}

// requestDequeues adds a new subscription to the dequeues of the recipient, and returns its id.
func (f *fixture) requestDequeues() domain.SubscriptionID {
	f.Helper()
	id := NewSubscriptionID()
	changed, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, id)
	require.NoError(f, err)
	require.True(f, changed)
	return id
}

func (f *fixture) withdrawDequeues(id domain.SubscriptionID) {
	f.Helper()
	require.NoError(f, f.Dequeues.WithdrawDequeues(f.ctx, f.actor, id))
}

// dequeueBundle opens a bundle and dequeues it.
func (f *fixture) dequeueBundle(changes ...Change) PeekedBundle {
	f.Helper()
	f.saveNew(1, changes...)
	b := f.peek()
	f.acknowledge(b)
	return b
}

// forAudience returns the notices that are for an audience.
func forAudience(to domain.Audience, notices []domain.Notice) []domain.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n domain.Notice) bool { return n.Audience != to })
}

var dequeueRules = []contractRule{
	{name: "a Dequeue writes a notice for subscribers while there is a request", test: func(f *fixture) {
		f.dequeueBundle()
		require.Empty(f, f.readNotices())
		one := f.requestDequeues()
		first := f.dequeueBundle()
		two := f.requestDequeues()
		f.withdrawDequeues(one)
		second := f.dequeueBundle()
		f.requireNoticesOf(f.readNotices(), first, second)
		for _, n := range f.readNotices() {
			require.Equal(f, domain.ForSubscribers, n.Audience)
			f.confirmNotice(n)
		}
		f.withdrawDequeues(two)
		f.dequeueBundle()
		require.Empty(f, f.readNotices())
	}},

	{name: "a Dequeue reports whether it has written a notice", test: func(f *fixture) {
		for _, want := range []bool{false, true} {
			f.saveNew(1)
			closed, err := f.Bundles.Acknowledge(f.ctx, f.actor, f.peek().ID)
			require.NoError(f, err)
			require.Equal(f, want, closed.HasNotice)
			f.requestDequeues()
		}
	}},

	{name: "a request before the first Save counts, in every group", test: func(f *fixture) {
		f.requestDequeues()
		origins := []domain.Origin{domain.TimeSeries, domain.Charges, domain.Aggregations}
		for _, origin := range origins {
			f.dequeueBundle(WithOrigin(origin))
		}
		require.Len(f, f.readNotices(), len(origins))
	}},

	{name: "a request counts for a bundle that is open", test: func(f *fixture) {
		f.saveNew(1)
		b := f.peek()
		f.requestDequeues()
		f.acknowledge(b)
		f.requireNoticesOf(f.readNotices(), b)
	}},

	{name: "a bundle has one notice, however often its Dequeue is repeated", test: func(f *fixture) {
		f.requestDequeues()
		b := f.dequeueBundle()
		f.requireClosed(b.ID)
		f.requireNoticesOf(f.readNotices(), b)
		f.saveNew(1)
		open := f.peek()
		f.runTogether(5, func(int) error {
			_, err := f.Bundles.Acknowledge(f.ctx, f.actor, open.ID)
			if domain.KindOf(err) == domain.NotFound {
				return nil
			}
			return err
		})
		f.requireNoticesOf(f.readNotices(), b, open)
	}},

	{name: "the Dequeue of a bundle on request writes a notice for each audience", test: func(f *fixture) {
		f.requestDequeues()
		f.saveNew(1)
		b := f.dequeueAnswered()
		require.Len(f, f.readNotices(), 2)
		f.requireNoticesOf(forAudience(domain.ForDomain, f.readNotices()), b)
		f.requireNoticesOf(forAudience(domain.ForSubscribers, f.readNotices()), b)
		f.confirmNotice(forAudience(domain.ForDomain, f.readNotices())[0])
		f.requireNoticesOf(f.readNotices(), b)
		require.Equal(f, domain.ForSubscribers, f.readNotices()[0].Audience)
	}},

	{name: "an operator's Skip and Release write no notice for subscribers, a Dequeue after a Replay does", test: func(f *fixture) {
		f.requestDequeues()
		f.saveNew(1)
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, f.peek().ID, because))
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, f.peek().ID, because))
		require.Empty(f, f.readNotices())
		b := f.dequeueBundle()
		_, err := f.Admin.Replay(f.ctx, f.actor, b.Group, because)
		require.NoError(f, err)
		f.acknowledge(b)
		f.requireNoticesOf(f.readNotices(), b, b)
	}},

	{name: "recipients with notices for subscribers are found, and a long outbox is emptied", test: func(f *fixture) {
		f.requestDequeues()
		var bundles []PeekedBundle
		f.saveNew(120, WithoutBundling)
		for range 120 {
			b := f.answerBundle(f.openOnRequest(), "made")
			f.acknowledge(b)
			bundles = append(bundles, b)
		}
		require.True(f, f.isWaiting(never))
		require.NotEmpty(f, forAudience(domain.ForDomain, f.readNotices()), "those of one audience do not hide the others")
		drained, err := DrainNotices(f.ctx, f.Stores, f.actor)
		require.NoError(f, err)
		for _, to := range []domain.Audience{domain.ForDomain, domain.ForSubscribers} {
			f.requireNoticesOf(forAudience(to, drained), bundles...)
		}
		require.False(f, f.isWaiting(never))
	}},

	{name: "recipients have requests of their own", test: func(f *fixture) {
		f.requestDequeues()
		other := f.withActor(NewActor())
		other.dequeueBundle()
		require.Empty(f, other.readNotices())
		other.withdrawDequeues(NewSubscriptionID())
		b := f.dequeueBundle()
		f.requireNoticesOf(f.readNotices(), b)
	}},

	{name: "a request may be repeated, and a withdrawal too", test: func(f *fixture) {
		id := f.requestDequeues()
		changed, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, id)
		require.NoError(f, err)
		require.False(f, changed)
		f.withdrawDequeues(id)
		f.withdrawDequeues(id)
		f.dequeueBundle()
		require.Empty(f, f.readNotices())
	}},

	{name: "a recipient has as many requests as subscriptions", test: func(f *fixture) {
		var ids []domain.SubscriptionID
		for range domain.MaxSubscriptions {
			ids = append(ids, f.requestDequeues())
		}
		_, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, NewSubscriptionID())
		require.ErrorIs(f, err, repository.ErrSubscriptionLimit)
		f.withdrawDequeues(ids[7])
		f.requestDequeues()
	}},

	{name: "concurrent requests all count, and make no Dequeue fail", test: func(f *fixture) {
		f.saveNew(3, WithoutBundling)
		ids := []domain.SubscriptionID{NewSubscriptionID(), NewSubscriptionID(), NewSubscriptionID()}
		first := f.peek()
		f.runTogether(4, func(i int) error {
			if i == len(ids) {
				_, err := f.Bundles.Acknowledge(f.ctx, f.actor, first.ID)
				return err
			}
			_, err := f.Dequeues.RequestDequeues(f.ctx, f.actor, ids[i])
			return err
		})
		for _, n := range f.readNotices() { // the Dequeue of first may have written a notice, depending on the order
			f.confirmNotice(n)
		}
		for _, id := range ids {
			b := f.dequeueBundle()
			f.requireNoticesOf(f.readNotices(), b)
			f.confirmNotice(f.readNotices()[0])
			f.withdrawDequeues(id)
		}
		f.dequeueBundle()
		require.Empty(f, f.readNotices())
	}},
}
