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

// limited returns a node on the store of k whose retention is seven days.
func (k *keeper) limited() *Repository {
	return k.rig.node(Options{DrawerCapacity: 3, Retention: 7 * day, SweepEvery: -1, Clock: k.clock}, false)
}

// unexpiring returns the ids of the bundles without a time to live, by state.
func (k *keeper) unexpiring() map[string][]string {
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

func TestBundleClosedUnderForever_ExpiresAfterTheSettingChanged(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	for range 3 {
		k.saves(1)
		k.takes()
	}
	released := k.opens()
	require.NoError(t, k.node.Release(t.Context(), k.actor, released.ID, becauseOfATest))
	skipped := k.opens()
	require.NoError(t, k.node.Skip(t.Context(), k.actor, skipped.ID, becauseOfATest))
	open := k.opens()
	require.Len(t, k.unexpiring()[stateDequeued], 3)

	node := k.limited()
	swept, err := node.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 5, swept.Bundles)
	require.Equal(t, map[string][]string{stateOpen: {open.ID.String()}}, k.unexpiring(), "an open bundle never expires")

	k.passes(7*day + 2*time.Second)
	k.expires()
	group, err := domain.DefaultGroups().Of(skipped.Cabinet.Origin)
	require.NoError(t, err)
	_, err = node.Replay(t.Context(), k.actor, group, becauseOfATest)
	require.Error(t, err)
	k.node = node
	require.Equal(t, open.ID, k.takes().ID)
	require.NoError(t, k.mended(k.actor))
}

// opens saves an event and opens the next bundle.
func (k *keeper) opens() repositorytest.Peeked {
	k.saves(1)
	b, err := repositorytest.Peek(k.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{})
	require.NoError(k, err)
	return b
}

func TestSweep_LooksForUnexpiringBundlesUntilThereAreNone(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	k.saves(1)
	k.takes()
	node := k.limited()
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

	k.saves(1)
	k.takes() // with the unlimited retention
	bundles, _ = sweep()
	require.Equal(t, 1, bundles)
}

func TestSweep_GivesNoTimeToLiveToABundleThatIsReplayed(t *testing.T) {
	k := newKeeperFor(t, 3, -1)
	k.saves(1)
	b := k.takes()
	group, err := domain.DefaultGroups().Of(b.Cabinet.Origin)
	require.NoError(t, err)
	node, line := k.tapped(Options{DrawerCapacity: 3, SweepEvery: -1, Clock: k.clock})
	line.set(at(1, isBatch, func() error { // between the query and the write
		_, err := k.node.Replay(t.Context(), k.actor, group, becauseOfATest)
		return err
	}))
	swept, err := node.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, swept.Bundles)
	require.Equal(t, map[string][]string{stateOpen: {b.ID.String()}}, k.unexpiring())
	k.passes(30 * day)
	k.expires()
	require.Equal(t, b.ID, k.takes().ID)
}

func TestSweepThatBreaksAnywhere_ExpiresClosedBundlesInTheEnd(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		for n := 1; ; n++ {
			k := newKeeperFor(t, 3, -1)
			k.saves(1)
			k.takes()
			open := k.opens()
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
			require.Equal(t, map[string][]string{stateOpen: {open.ID.String()}}, k.unexpiring())
			requests := k.engine.Requests()
			_, err := k.limited().Sweep(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, k.engine.Requests()-requests, int64(4), "the gate says that all of them expire")
		}
	}
}

func isBatch(req *http.Request) bool { return req.Header.Get("x-ms-cosmos-is-batch-request") != "" }
