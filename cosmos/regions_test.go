package cosmos

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// On an account with bounded staleness, a read region is some commits behind the write region. A dequeued
// bundle must not be returned again.
func TestDequeuedBundle_DoesNotComeBackFromARegionThatIsBehind(t *testing.T) {
	for age := range int32(6) {
		synctest.Test(t, func(t *testing.T) {
			var old staleReads
			s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{
				Consistency: "BoundedStaleness", Stale: old.commitsBehind,
				WriteRegions: []string{"West Europe"}, ReadRegions: []string{"North Europe", "West Europe"},
			})}
			node := s.node(small, false)
			s.save(node, 0, repositorytest.Events(1, s.actor))
			b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			require.NoError(t, err)
			_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
			require.NoError(t, err)
			old.age.Store(age)
			old.left.Store(4)
			next, err := node.NextUnacknowledged(t.Context(), s.actor, allGroups)
			if err != nil { // without an error, the Peek returns a new run with these events, which Add would refuse
				require.ErrorIs(t, err, domain.ErrNoData, "%d commits behind", age)
			}
			require.Nil(t, next.Open, "%d commits behind", age)
			old.left.Store(2)
			_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
			require.Equal(t, domain.NotFound, domain.KindOf(err))
		})
	}
}
