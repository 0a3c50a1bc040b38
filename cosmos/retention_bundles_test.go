package cosmos

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// nodeWithRetention returns a node that uses the store of k with a retention of seven days.
func (k *keeper) nodeWithRetention() *Repository {
	return k.rig.node(Options{DrawerCapacity: 3, Retention: 7 * day, SweepEvery: -1, Clock: k.clock}, false)
}

// listUnexpiring returns the ids of the bundles without a time to live, grouped by state.
func (k *keeper) listUnexpiring() map[string][]string {
	found := make(map[string][]string)
	docs, err := client.All[bundleDoc](k.Context(), k.node.beginCall("test").Query(k.node.db.bundles, k.actor.String(),
		"SELECT * FROM c WHERE c.kind = 'bundle'"))
	require.NoError(k, err)
	for _, d := range docs {
		if d.TTL == 0 {
			found[d.State] = append(found[d.State], d.ID)
		}
	}
	return found
}

func TestBundleUnderUnlimitedRetention_ExpiresAfterTheSettingChanged(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	for range 3 {
		k.saveEvents(1)
		k.takeBundle()
	}
	released := k.saveAndOpen()
	require.NoError(t, k.node.Release(t.Context(), k.actor, released.ID, becauseOfATest))
	skipped := k.saveAndOpen()
	require.NoError(t, k.node.Skip(t.Context(), k.actor, skipped.ID, becauseOfATest))
	open := k.saveAndOpen()
	require.Len(t, k.listUnexpiring()[stateDequeued], 3)

	node := k.nodeWithRetention()
	swept, err := node.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 5, swept.Bundles)
	require.Equal(t, map[string][]string{stateOpen: {open.ID.String()}}, k.listUnexpiring(), "an open bundle never expires")

	k.passTime(7*day + 2*time.Second)
	k.expireDocuments()
	group, err := domain.DefaultGroups().GroupOf(skipped.Cabinet.Origin)
	require.NoError(t, err)
	_, err = node.Replay(t.Context(), k.actor, group, becauseOfATest)
	require.Error(t, err)
	k.node = node
	require.Equal(t, open.ID, k.takeBundle().ID)
	require.NoError(t, k.repairMailbox(k.actor))
}

// saveAndOpen saves an event and opens the next bundle.
func (k *keeper) saveAndOpen() repositorytest.PeekedBundle {
	k.saveEvents(1)
	b, err := repositorytest.Peek(k.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{})
	require.NoError(k, err)
	return b
}

func TestSweep_SearchesUnexpiringBundlesUntilNoneIsFound(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	k.saveEvents(1)
	k.takeBundle()
	node := k.nodeWithRetention()
	sweep := func() (bundles int, requests int64) {
		before := k.engine.Requests()
		swept, err := node.Sweep(t.Context())
		require.NoError(t, err)
		return swept.Bundles, k.engine.Requests() - before
	}
	bundles, _ := sweep()
	require.Equal(t, 1, bundles)
	bundles, marking := sweep()
	require.Zero(t, bundles)
	_, after := sweep()
	require.Equal(t, marking-2, after, "without the query and the mark")

	k.saveEvents(1)
	k.takeBundle() // this bundle is closed by k.node, which has an unlimited retention
	bundles, _ = sweep()
	require.Equal(t, 1, bundles)
}

func TestSweep_GivesNoTimeToLiveToABundleThatIsReplayed(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	k.saveEvents(1)
	b := k.takeBundle()
	group, err := domain.DefaultGroups().GroupOf(b.Cabinet.Origin)
	require.NoError(t, err)
	node, line := k.tappedNode(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock})
	line.setBefore(atNth(1, isBatch, func() error { // this function runs after the query and before the write of the sweep
		_, err := k.node.Replay(t.Context(), k.actor, group, becauseOfATest)
		return err
	}))
	swept, err := node.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, swept.Bundles)
	require.Equal(t, map[string][]string{stateOpen: {b.ID.String()}}, k.listUnexpiring())
	k.passTime(30 * day)
	k.expireDocuments()
	require.Equal(t, b.ID, k.takeBundle().ID)
}

func TestSweep_ExpiresClosedBundlesDespiteACrashAtAnyRequest(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		for n := 1; ; n++ {
			k := newKeeperFor(t, 3, -1)
			k.saveEvents(1)
			k.takeBundle()
			open := k.saveAndOpen()
			node := k.rig.node(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock, Retries: -1}, false)
			k.line.BreakOne(n, fault)
			_, _ = node.Sweep(t.Context())
			if k.line.Fired() == 0 {
				require.Greater(t, n, 4)
				break
			}
			for range 2 {
				_, err := node.Sweep(t.Context())
				require.NoError(t, err)
			}
			require.Equal(t, map[string][]string{stateOpen: {open.ID.String()}}, k.listUnexpiring())
			requests := k.engine.Requests()
			_, err := k.nodeWithRetention().Sweep(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, k.engine.Requests()-requests, int64(4), "the gate says that all of them expire")
		}
	}
}

func isBatch(req *http.Request) bool { return req.Header.Get("x-ms-cosmos-is-batch-request") != "" }
