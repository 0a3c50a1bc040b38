package cosmos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestPeek_CostsTheSameInOneDrawerAndInSeveral(t *testing.T) {
	for _, drawers := range []int{1, 3, 20} {
		k := newKeeper(t, 10)
		for range 2 * drawers {
			k.saveEvents(5, repositorytest.WithoutBundling)
		}
		k.takeBundle() // the Peek reads the drawers and caches them
		for range 8 {
			before := k.engine.Requests()
			_, err := repositorytest.Peek(t.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{})
			require.NoError(t, err)
			require.Equal(t, int64(4), k.engine.Requests()-before, "%d drawers", drawers)
			k.takeBundle()
		}
	}
}

// A node reads the drawers of a cabinet. After further Saves fill the last drawer, a Peek by the same
// node finds the new events.
func TestPeek_FindsEventsSavedAfterTheDrawersWereRead(t *testing.T) {
	k := newKeeper(t, 10)
	var saved []domain.Event
	for range 2 {
		saved = append(saved, k.saveEvents(5, repositorytest.WithoutBundling)...)
	}
	saved = append(saved, k.saveEvents(2, repositorytest.WithoutBundling)...)
	for range 12 {
		saved = append(saved, k.saveEvents(3, repositorytest.WithoutBundling)...)
		b := k.takeBundle()
		require.Equal(t, saved[0].ID, b.Events[0].ID)
		saved = saved[1:]
	}
	for _, e := range saved {
		require.Equal(t, e.ID, k.takeBundle().Events[0].ID)
	}
	_, err := k.node.NextUnacknowledged(t.Context(), k.actor, allGroups)
	require.ErrorIs(t, err, domain.ErrNoData)
	require.NoError(t, k.repairMailbox(k.actor))
}

func TestBundle_SpansUpToSixDrawers(t *testing.T) {
	k := newKeeper(t, 2)
	k.saveEvents(30)
	require.Equal(t, 12, k.takeBundle().Count)
	require.Equal(t, 12, k.takeBundle().Count)
	require.Equal(t, 6, k.takeBundle().Count)
}
