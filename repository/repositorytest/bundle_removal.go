package repositorytest

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// bundleRetention is the retention of the stores that these rules open. The rules advance the clock of
// the stores.
const bundleRetention = time.Hour

func (f *fixture) sweepBundles() {
	f.Helper()
	require.NoError(f, f.Sweep(f.ctx, f.actor))
}

// openWatched opens a bundle and marks it as watched.
func (f *fixture) openWatched() PeekedBundle {
	f.Helper()
	f.saveNew(1)
	b := f.peek()
	f.watchBundle(b.ID)
	return b
}

// requireRemovalsOf requires that the outbox contains one notice of the removal of each bundle, and
// delivers these notices.
func (f *fixture) requireRemovalsOf(version int64, bundles ...PeekedBundle) {
	f.Helper()
	removals := make(map[domain.BundleID]domain.Notice)
	for _, n := range forAudience(domain.ForWatchersOfRemoval, f.readNotices()) {
		require.NotContains(f, removals, n.Bundle)
		removals[n.Bundle] = n
	}
	require.Len(f, removals, len(bundles))
	for i, b := range bundles {
		n := removals[b.ID]
		f.requireNoticesOf([]domain.Notice{n}, b)
		require.Equal(f, version, n.Version)
		require.Equal(f, domain.ResourceDeleted, n.Event())
		f.confirmNotice(n)
		require.Len(f, forAudience(domain.ForWatchersOfRemoval, f.readNotices()), len(bundles)-i-1)
	}
}

// deliverUpdates removes the notices of Dequeues from the outbox, as a relay does.
func (f *fixture) deliverUpdates() {
	f.Helper()
	for _, n := range forAudience(domain.ForWatchers, f.readNotices()) {
		require.Equal(f, domain.ResourceUpdated, n.Event())
		f.confirmNotice(n)
	}
}

func (f *fixture) cannotReplay(group domain.Group) {
	f.Helper()
	_, err := f.Admin.Replay(f.ctx, f.actor, group, because)
	f.wantRefusal(domain.NotFound, err)
}

var bundleRemovalRules = []contractRule{
	{name: "the retention removes a watched bundle, and writes one notice", keeps: bundleRetention, test: func(f *fixture) {
		b := f.openWatched()
		f.acknowledge(b)
		f.deliverUpdates()
		f.sweepBundles()
		require.Empty(f, f.readNotices())
		f.pass(bundleRetention)
		for range 3 {
			f.sweepBundles()
		}
		require.True(f, f.isWaiting(never))
		f.requireRemovalsOf(2, b)
		f.sweepBundles()
		require.Empty(f, f.readNotices())
		f.cannotReplay(b.Group)
		f.requireClosed(b.ID)
		f.cannotWatch(b.ID)
	}},

	{name: "the notices of a Dequeue and of the removal are both kept", keeps: bundleRetention, test: func(f *fixture) {
		b := f.openWatched()
		f.acknowledge(b)
		f.pass(bundleRetention)
		f.sweepBundles()
		f.requireNoticesOf(forAudience(domain.ForWatchers, f.readNotices()), b)
		f.requireRemovalsOf(2, b)
		f.requireNoticesOf(f.readNotices(), b)
		f.deliverUpdates()
		require.Empty(f, f.readNotices())
	}},

	{name: "the removal of a bundle that is not watched writes no notice", keeps: bundleRetention, test: func(f *fixture) {
		f.saveNew(1)
		f.acknowledge(f.peek())
		f.pass(2 * bundleRetention)
		f.sweepBundles()
		require.Empty(f, f.readNotices())
	}},

	{name: "a watched bundle that is open is not removed", keeps: bundleRetention, test: func(f *fixture) {
		b := f.openWatched()
		f.pass(2 * bundleRetention)
		f.sweepBundles()
		require.Equal(f, b.ID, f.peek().ID)
		require.Empty(f, f.readNotices())
		f.acknowledge(b)
		f.deliverUpdates()
		f.sweepBundles()
		require.Empty(f, f.readNotices(), "the retention begins with the Dequeue")
		f.pass(bundleRetention)
		f.sweepBundles()
		f.requireRemovalsOf(2, b)
	}},

	{name: "a watched bundle that an operator has skipped or released is removed", keeps: bundleRetention, test: func(f *fixture) {
		released := f.openWatched()
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, released.ID, because))
		skipped := f.peek()
		f.watchBundle(skipped.ID)
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, skipped.ID, because))
		require.Empty(f, f.readNotices())
		f.pass(bundleRetention)
		f.sweepBundles()
		f.requireRemovalsOf(1, released, skipped)
	}},

	{name: "the retention of a bundle begins again when it was replayed", keeps: bundleRetention, test: func(f *fixture) {
		b := f.openWatched()
		f.acknowledge(b)
		f.pass(bundleRetention / 2)
		_, err := f.Admin.Replay(f.ctx, f.actor, b.Group, because)
		require.NoError(f, err)
		f.pass(bundleRetention)
		f.sweepBundles()
		require.Equal(f, b.ID, f.peek().ID)
		f.acknowledge(b)
		f.deliverUpdates()
		f.sweepBundles()
		require.Empty(f, f.readNotices())
		f.pass(bundleRetention)
		f.sweepBundles()
		f.requireRemovalsOf(3, b)
	}},

	{name: "each bundle has a notice of its own", keeps: bundleRetention, test: func(f *fixture) {
		other := f.withActor(NewActor())
		var all []PeekedBundle
		for range 3 {
			b := f.openWatched()
			f.acknowledge(b)
			all = append(all, b)
		}
		theirs := other.openWatched()
		other.acknowledge(theirs)
		f.deliverUpdates()
		other.deliverUpdates()
		f.pass(bundleRetention)
		f.sweepBundles()
		other.sweepBundles()
		f.requireRemovalsOf(2, all...)
		other.requireRemovalsOf(2, theirs)
	}},

	{name: "a sweep and a Replay at the same moment: the bundle is open, or it is removed with a notice", keeps: bundleRetention, test: func(f *fixture) {
		for range 8 {
			f := f.withActor(NewActor()) // this actor has no older bundles
			b := f.openWatched()
			f.acknowledge(b)
			f.deliverUpdates()
			f.pass(bundleRetention)
			var both sync.WaitGroup
			var failure error
			both.Go(func() { _, failure = f.Admin.Replay(f.ctx, f.actor, b.Group, because) })
			both.Go(func() { f.sweepBundles() })
			both.Wait()
			if failure != nil {
				f.wantRefusal(domain.NotFound, failure)
				f.requireRemovalsOf(2, b)
				continue
			}
			require.Empty(f, f.readNotices())
			require.Equal(f, b.ID, f.peek().ID)
			f.acknowledge(b)
			f.deliverUpdates()
		}
	}},
}
