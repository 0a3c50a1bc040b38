package cosmos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// Another node watches the bundle after a Dequeue has read it and before the Dequeue writes.
func TestAWatchInTheMiddleOfADequeue_IsNotified(t *testing.T) {
	inEveryAge(t, func(s *trust, _ func()) {
		node, line := s.tappedNode(small)
		other := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b, err := repositorytest.Peek(s.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(s, err)
		line.setBefore(atNth(1, isWrite, func() error {
			_, err := other.WatchBundle(s.Context(), s.actor, b.ID)
			return err
		}))
		closed, err := node.Acknowledge(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
		require.True(s, closed.HasNotice)
		notices, err := other.Notices(s.Context(), s.actor)
		require.NoError(s, err)
		require.Len(s, notices, 1)
		require.Equal(s, domain.ForWatchers, notices[0].Audience)
	})
}
