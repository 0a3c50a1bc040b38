package cosmos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A Dequeue that read the gates before a request was added is refused, and reads the gates again.
func TestRequestDequeues_TakesEffectDespiteStaleReads(t *testing.T) {
	for age := range int32(8) {
		for _, opened := range []bool{true, false} {
			var old staleReads
			s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Consistency: "Session", Stale: old.commitsBehind})}
			one, other := s.node(small, false), s.node(small, false)
			s.save(one, 0, repositorytest.Events(1, s.actor))
			peek := func() domain.BundleID {
				b, err := repositorytest.Peek(t.Context(), s.stores(other), s.actor, allGroups, domain.BundleID{})
				for range 3 { // a stale read may return no event, or no gate
					if err != nil {
						b, err = repositorytest.Peek(t.Context(), s.stores(other), s.actor, allGroups, domain.BundleID{})
					}
				}
				require.NoError(t, err)
				return b.ID
			}
			var id domain.BundleID
			if opened {
				id = peek()
			}
			_, err := one.RequestDequeues(t.Context(), s.actor, repositorytest.NewSubscriptionID())
			require.NoError(t, err)
			old.age.Store(age)
			old.left.Store(3)
			if !opened {
				id = peek()
				old.left.Store(3)
			}
			_, err = other.Acknowledge(t.Context(), s.actor, id)
			require.NoError(t, err)
			old.left.Store(0)
			notices, err := one.Notices(t.Context(), s.actor)
			require.NoError(t, err)
			require.Equal(t, []domain.BundleID{id}, bundlesOf(notices), "reads that are %d versions old", age)
			require.NoError(t, s.auditMailbox(s.actor))
		}
	}
}

// TestADequeueWithASubscriber_CostsOneMoreCreate checks that a subscriber adds one create to the batch of a Dequeue.
// TestAnswersAndNotices_CostTheExpectedRequests checks the cost of other Dequeues.
func TestADequeueWithASubscriber_CostsOneMoreCreate(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{Exclusive: true, SweepEvery: -1}, false)
	s.save(node, 0, repositorytest.Events(3, s.actor, repositorytest.WithoutBundling))
	dequeue := func() (units float64, requests int64) {
		b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(t, err)
		units, requests = s.engine.RequestUnits(), s.engine.Requests()
		_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
		require.NoError(t, err)
		return s.engine.RequestUnits() - units, s.engine.Requests() - requests
	}
	before, requests := dequeue()
	require.EqualValues(t, 3, requests)
	id := repositorytest.NewSubscriptionID()
	_, err := node.RequestDequeues(t.Context(), s.actor, id)
	require.NoError(t, err)
	subscribed, requests := dequeue()
	require.EqualValues(t, 3, requests)
	require.InDelta(t, 6.5, subscribed-before, 2.5, "one more create")
	require.NoError(t, node.WithdrawDequeues(t.Context(), s.actor, id))
	after, requests := dequeue()
	require.EqualValues(t, 3, requests)
	t.Logf("a Dequeue costs %.2f RU, %.2f RU with a subscriber, and %.2f RU once that is gone", before, subscribed, after)
}
