package cosmos

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// openWatched opens a bundle and creates a watch for it.
func (k *keeper) openWatched() repositorytest.PeekedBundle {
	k.Helper()
	b := k.saveAndOpen()
	_, err := k.node.WatchBundle(k.Context(), k.actor, b.ID)
	require.NoError(k, err)
	return b
}

// dequeueWatched dequeues a bundle and delivers the notices of the Dequeue.
func (k *keeper) dequeueWatched(b repositorytest.PeekedBundle) {
	k.Helper()
	_, err := k.node.Acknowledge(k.Context(), k.actor, b.ID)
	require.NoError(k, err)
	k.node.AwaitHints(k.Context(), k.actor)
	for _, n := range k.readNotices() {
		require.NoError(k, k.node.Delivered(k.Context(), n))
	}
}

func (k *keeper) readNotices() []domain.Notice {
	k.Helper()
	notices, err := k.node.Notices(k.Context(), k.actor)
	require.NoError(k, err)
	return notices
}

// readBundle reads the document of a bundle. isThere is false if the document does not exist.
func (k *keeper) readBundle(id domain.BundleID) (d bundleDoc, isThere bool) {
	k.Helper()
	_, err := k.node.beginCall("test").Read(k.Context(), k.node.db.bundles, k.actor.String(), id.String(), &d)
	if !client.IsNotFound(err) {
		require.NoError(k, err)
	}
	return d, err == nil
}

func audiencesOf(notices []domain.Notice) (all []domain.Audience) {
	for _, n := range notices {
		all = append(all, n.Audience)
	}
	return all
}

func TestWatchedBundle_IsRemovedByASweepInsteadOfItsTimeToLive(t *testing.T) {
	k := newKeeper(t, 3)
	dequeued := k.openWatched()
	k.dequeueWatched(dequeued)
	released := k.openWatched()
	require.NoError(t, k.node.Release(t.Context(), k.actor, released.ID, becauseOfATest))
	skipped := k.openWatched()
	require.NoError(t, k.node.Skip(t.Context(), k.actor, skipped.ID, becauseOfATest))
	all := []domain.BundleID{dequeued.ID, released.ID, skipped.ID}

	k.passTime(7*day - time.Second)
	require.Zero(t, k.runSweep().Watched)
	k.passTime(30 * day)
	k.expireDocuments()
	for _, id := range all {
		d, isThere := k.readBundle(id)
		require.True(t, isThere)
		require.Zero(t, d.TTL)
		require.Equal(t, millisOf(noon.Add(7*day)), d.Expires)
	}
	var recipients []domain.ActorID
	k.node.ObserveRemovals(func(recipient domain.ActorID) { recipients = append(recipients, recipient) })
	require.Equal(t, 3, k.runSweep().Watched)
	require.Equal(t, []domain.ActorID{k.actor, k.actor, k.actor}, recipients)
	require.Zero(t, k.runSweep().Watched)
	for _, id := range all {
		_, isThere := k.readBundle(id)
		require.False(t, isThere)
	}
	require.ElementsMatch(t, all, bundlesOf(k.readNotices()))
	require.NoError(t, k.repairMailbox(k.actor), "a check accepts the notices")
}

func TestSweep_DoesNotRemoveAWatchedBundleThatIsReplayed(t *testing.T) {
	k := newKeeper(t, 3)
	b := k.openWatched()
	k.dequeueWatched(b)
	group, err := domain.DefaultGroups().GroupOf(b.Cabinet.Origin)
	require.NoError(t, err)
	k.passTime(7 * day)
	node, line := k.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock})
	line.setBefore(atNth(1, isBatch, func() error { // this function runs after the query and before the write of the sweep
		_, err := k.node.Replay(t.Context(), k.actor, group, becauseOfATest)
		return err
	}))
	swept, err := node.SweepRecipient(t.Context(), k.actor)
	require.NoError(t, err)
	require.Zero(t, swept.Watched)
	require.Empty(t, k.readNotices())
	k.passTime(30 * day)
	require.Zero(t, k.runSweep().Watched, "it is open")
	require.Equal(t, b.ID, k.takeBundle().ID)
}

// An operator's order reads a bundle, which is then watched, and writes the bundle afterwards. The watch
// must be notified when the bundle is removed.
func TestAWatchDuringAnOperatorsOrder_IsNotifiedOfTheRemoval(t *testing.T) {
	for name, order := range map[string]func(k *keeper, node *Repository, id domain.BundleID) error{
		"Skip": func(k *keeper, node *Repository, id domain.BundleID) error {
			return node.Skip(k.Context(), k.actor, id, becauseOfATest)
		},
		"Release": func(k *keeper, node *Repository, id domain.BundleID) error {
			return node.Release(k.Context(), k.actor, id, becauseOfATest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, 3)
			b := k.saveAndOpen()
			node, line := k.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock})
			line.setBefore(atNth(1, isBatch, func() error {
				_, err := k.node.WatchBundle(t.Context(), k.actor, b.ID)
				return err
			}))
			require.NoError(t, order(k, node, b.ID))
			k.passTime(7 * day)
			require.Equal(t, 1, k.runSweep().Watched)
			require.Equal(t, []domain.BundleID{b.ID}, bundlesOf(k.readNotices()))
		})
	}
}

func TestWatchedBundleUnderUnlimitedRetention_IsRemovedAfterTheSettingChanged(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	b := k.openWatched()
	k.dequeueWatched(b)
	k.saveEvents(1)
	other := k.takeBundle()
	k.passTime(30 * day)
	require.Zero(t, k.runSweep().Watched)
	k.node = k.nodeWithRetention()
	swept := k.runSweep()
	require.Equal(t, 2, swept.Bundles)
	require.Zero(t, swept.Watched)
	d, _ := k.readBundle(b.ID)
	require.Zero(t, d.TTL)
	k.passTime(7 * day)
	k.expireDocuments()
	require.Equal(t, 1, k.runSweep().Watched)
	require.Equal(t, []domain.BundleID{b.ID}, bundlesOf(k.readNotices()))
	_, isThere := k.readBundle(other.ID)
	require.False(t, isThere)
}

// A sweep reads a bundle that is not watched. Before the sweep writes, a node with an unlimited retention
// replays the bundle, watches it and closes it. The sweep must not set a time to live.
func TestSweep_GivesNoTimeToLiveToABundleThatIsWatchedMeanwhile(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	k.saveEvents(1)
	b := k.takeBundle()
	group, err := domain.DefaultGroups().GroupOf(b.Cabinet.Origin)
	require.NoError(t, err)
	node, line := k.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock})
	line.setBefore(atNth(1, isBatch, func() error {
		if _, err := k.node.Replay(t.Context(), k.actor, group, becauseOfATest); err != nil {
			return err
		}
		if _, err := k.node.WatchBundle(t.Context(), k.actor, b.ID); err != nil {
			return err
		}
		_, err := k.node.Acknowledge(t.Context(), k.actor, b.ID)
		return err
	}))
	_, err = node.Sweep(t.Context())
	require.NoError(t, err)
	d, _ := k.readBundle(b.ID)
	require.Zero(t, d.TTL)
	require.Zero(t, d.Expires)
	swept, err := node.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, swept.Bundles)
	d, _ = k.readBundle(b.ID)
	require.Zero(t, d.TTL)
	require.NotZero(t, d.Expires)
}

// A node of an older version closes a watched bundle and sets a time to live. It preserves the removal
// time that a newer version stored at an earlier Dequeue. The sweep must not remove the bundle.
func TestWatchedBundleOfAnOlderVersion_IsLeftToItsTimeToLive(t *testing.T) {
	k := newKeeper(t, 3)
	b := k.openWatched()
	k.dequeueWatched(b)
	var ops azcosmos.PatchOperations
	ops.AppendSet("/ttl", int64(9*day/time.Second))
	require.NoError(t, k.node.beginCall("test").Patch(t.Context(), k.node.db.bundles, k.actor.String(), b.ID.String(), ops, &bundleDoc{}))
	k.passTime(8 * day)
	require.Zero(t, k.runSweep().Watched)
	k.passTime(2 * day)
	k.expireDocuments()
	require.Zero(t, k.runSweep().Watched)
	_, isThere := k.readBundle(b.ID)
	require.False(t, isThere)
	require.Empty(t, k.readNotices())
}

// A sweep reports a damaged watched bundle that it cannot remove, and removes the remaining bundles.
func TestSweep_RemovesTheOtherBundlesDespiteADamagedOne(t *testing.T) {
	k := newKeeper(t, 3)
	damaged := k.openWatched()
	k.dequeueWatched(damaged)
	b := k.openWatched()
	k.dequeueWatched(b)
	var ops azcosmos.PatchOperations
	ops.AppendSet("/cabinet", "none")
	_, err := k.node.db.bundles.PatchItem(t.Context(), azcosmos.NewPartitionKeyString(k.actor.String()), damaged.ID.String(), ops, nil)
	require.NoError(t, err)
	k.passTime(7 * day)
	swept, err := k.node.Sweep(t.Context())
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
	require.ErrorContains(t, err, damaged.ID.String())
	require.Equal(t, 1, swept.Watched)
	require.Equal(t, []domain.BundleID{b.ID}, bundlesOf(k.readNotices()))
}

// A node crashes at one request of a sweep, for each request, and another node sweeps. Then the bundle is
// removed, and exactly one notice exists.
func TestRemovalOfAWatchedBundle_SurvivesACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		for n := 1; ; n++ {
			k := newKeeper(t, 3)
			b := k.openWatched()
			k.dequeueWatched(b)
			k.passTime(7 * day)
			dying := k.rig.node(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock, Retries: -1}, false)
			k.line.CrashAt(n, last)
			_, err := dying.SweepRecipient(t.Context(), k.actor)
			crashed := k.line.Fired() > 0
			require.Equal(t, crashed, err != nil, "%v", err)
			k.line.Break(nil)
			_, isThere := k.readBundle(b.ID)
			require.Equal(t, isThere, len(k.readNotices()) == 0, "both or neither")
			k.runSweep()
			_, isThere = k.readBundle(b.ID)
			require.False(t, isThere)
			require.Equal(t, []domain.Audience{domain.ForWatchersOfRemoval}, audiencesOf(k.readNotices()))
			if !crashed {
				require.Greater(t, n, 4)
				break
			}
		}
	}
}

// TestWatchedBundles_CostUpToTheirLimit measures the additional request units of a watched bundle, and of
// a sweep that finds no watched bundle.
func TestWatchedBundles_CostUpToTheirLimit(t *testing.T) {
	for _, tc := range []struct {
		name                            string
		pessimistic                     bool
		watch, dequeue, removal, search float64 // request units
	}{{"by published query metrics", false, 10.4, 32.523, 14.726, 2.9}, {"pessimistic", true, 10.4, 33.5, 15.7, 2.9}} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKeeperOn(t, embedded.Options{Pessimistic: tc.pessimistic}, Options{Exclusive: true})
			cost := func(what string, requests int64, want float64, do func() error) {
				units, before := k.engine.RequestUnits(), k.engine.Requests()
				require.NoError(t, do())
				units = k.engine.RequestUnits() - units
				t.Logf("%-40s %d requests, %6.3f RU", what, k.engine.Requests()-before, units)
				require.Equal(t, requests, k.engine.Requests()-before, what)
				assert.InDelta(t, want, units, 0.01, what)
			}
			remove := func() error {
				_, err := k.node.beginCall("sweep").removeWatched(t.Context(), domain.ActorID{})
				return err
			}
			b := k.saveAndOpen()
			cost("a watch", 1, tc.watch, func() error { _, err := k.node.WatchBundle(t.Context(), k.actor, b.ID); return err })
			cost("Dequeue of a watched bundle", 3, tc.dequeue, func() error { _, err := k.node.Acknowledge(t.Context(), k.actor, b.ID); return err })
			cost("a sweep looks, and none is due", 1, tc.search, remove)
			k.passTime(7 * day)
			cost("a sweep removes one", 2, tc.removal, remove)
		})
	}
}
