package repositorytest

import (
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// watchBundle marks a bundle as watched, and returns the version of its last change.
func (f *fixture) watchBundle(id domain.BundleID) int64 {
	f.Helper()
	version, err := f.Watches.WatchBundle(f.ctx, f.actor, id)
	require.NoError(f, err)
	return version
}

func (f *fixture) cannotWatch(id domain.BundleID) {
	f.Helper()
	_, err := f.Watches.WatchBundle(f.ctx, f.actor, id)
	require.Equal(f, domain.NotFound, domain.KindOf(err), "%v", err)
}

var bundleWatchRules = []contractRule{
	{name: "the Dequeue of a watched bundle writes one notice for watchers", test: func(f *fixture) {
		f.dequeueBundle()
		f.saveNew(1)
		b := f.peek()
		require.Zero(f, f.watchBundle(b.ID))
		require.Zero(f, f.watchBundle(b.ID))
		require.Empty(f, f.readNotices())
		require.Equal(f, b.ID, f.peek().ID)
		closed, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
		require.NoError(f, err)
		require.True(f, closed.HasNotice)
		f.requireNoticesOf(f.readNotices(), b)
		n := f.readNotices()[0]
		require.Equal(f, domain.ForWatchers, n.Audience)
		require.EqualValues(f, 1, n.Version)
		f.confirmNotice(n)
		f.dequeueBundle()
		require.Empty(f, f.readNotices())
	}},

	{name: "only an open bundle of the actor can be watched", test: func(f *fixture) {
		f.cannotWatch(NewBundleID())
		f.saveNew(1)
		b := f.peek()
		_, err := f.Watches.WatchBundle(f.ctx, NewActor(), b.ID)
		require.Equal(f, domain.NotFound, domain.KindOf(err), "%v", err)
		f.acknowledge(b)
		f.cannotWatch(b.ID)
		require.Empty(f, f.readNotices())
	}},

	{name: "a Dequeue writes a notice for each audience", test: func(f *fixture) {
		f.requestDequeues()
		f.saveNew(1)
		b := f.answerBundle(f.openOnRequest(), "made")
		f.watchBundle(b.ID)
		f.acknowledge(b)
		f.requireNoticesOf(f.readNotices(), b, b, b)
		for _, to := range []domain.Audience{domain.ForDomain, domain.ForSubscribers, domain.ForWatchers} {
			require.Len(f, forAudience(to, f.readNotices()), 1)
		}
	}},

	{name: "a watch and a Dequeue at the same moment: there is a notice, or the bundle is not open", test: func(f *fixture) {
		for range 8 {
			f.saveNew(1)
			b := f.peek()
			var both sync.WaitGroup
			var watched error
			both.Go(func() { _, watched = f.Watches.WatchBundle(f.ctx, f.actor, b.ID) })
			both.Go(func() { f.acknowledge(b) })
			both.Wait()
			notices := f.readNotices()
			if watched != nil {
				require.Equal(f, domain.NotFound, domain.KindOf(watched), "%v", watched)
				require.Empty(f, notices)
				continue
			}
			require.Len(f, notices, 1)
			f.confirmNotice(notices[0])
		}
	}},
}
