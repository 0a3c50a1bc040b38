package cosmos

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestClosedBundle_IsNotPeekedDespiteStaleReads(t *testing.T) {
	for name, closeBundle := range map[string]func(*trust, *Repository, domain.BundleID) error{
		"Dequeue": func(s *trust, node *Repository, id domain.BundleID) error {
			_, err := node.Acknowledge(s.Context(), s.actor, id)
			return err
		},
		"Skip": func(s *trust, node *Repository, id domain.BundleID) error {
			return node.Skip(s.Context(), s.actor, id, becauseOfATest)
		},
		"Release": func(s *trust, node *Repository, id domain.BundleID) error {
			return node.Release(s.Context(), s.actor, id, becauseOfATest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEveryAge(t, func(s *trust, makeOld func()) {
				node := s.node(small, false)
				s.save(node, 0, repositorytest.Events(1, s.actor))
				b, err := repositorytest.Peek(s.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
				require.NoError(s, err)
				require.NoError(s, closeBundle(s, node, b.ID))
				makeOld()
				next, err := node.NextUnacknowledged(s.Context(), s.actor, allGroups)
				if err != nil {
					require.ErrorIs(s, err, domain.ErrNoData)
				}
				require.Nil(s, next.Open)
				makeOld()
				_, _, err = node.Find(s.Context(), s.actor, b.ID)
				require.Equal(s, domain.NotFound, domain.KindOf(err), "%v", err)
			})
		})
	}
}

func TestOpenBundle_IsAlwaysFoundDespiteStaleReads(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b, err := repositorytest.Peek(s.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(s, err)
		makeOld()
		_, _, err = node.Find(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
		makeOld()
		_, err = node.Acknowledge(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
	})
}

func TestFrozenActor_GetsNoOpenBundleDespiteStaleReads(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		_, err := repositorytest.Peek(s.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
		require.NoError(s, err)
		require.NoError(s, node.Freeze(s.Context(), s.actor, becauseOfATest))
		makeOld()
		next, err := node.NextUnacknowledged(s.Context(), s.actor, allGroups)
		require.Nil(s, next.Open)
		if !errors.Is(err, domain.ErrNoData) { // a stale read may return the gate from before the bundle was opened
			require.True(s, err == nil || errors.Is(err, repository.ErrFrozen), "%v", err)
		}
	})
}

func TestOpenBundleOutsideItsGate_IsDamage(t *testing.T) {
	s := newTrust(t)
	s.rig = newRig(t, embedded.Options{Consistency: "Session"})
	node := s.node(Options{Retries: -1}, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))
	b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)

	c := node.beginCall("test")
	var before gate
	etag, err := c.Read(t.Context(), node.db.bundles, s.actor.String(), gateID(b.Group), &before)
	require.NoError(t, err)
	damaged := before.release("damage")
	_, err = c.Put(t.Context(), node.db.bundles, s.actor.String(), before.ID, etag, damaged)
	require.NoError(t, err)
	_, err = c.proveOpen(t.Context(), &before)
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
}
