package cosmos

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// These tests execute operators' orders while hints are too high or reads are stale.

var becauseOfATest = repository.AdminAction{Who: "a test", Why: "to see its effect"}

func groupOf(t *testing.T, origin domain.Origin) domain.Group {
	t.Helper()
	group, err := domain.DefaultGroups().GroupOf(origin)
	require.NoError(t, err)
	return group
}

func TestReplay_KeepsTheOrderThoughAnEntryIsTooHigh(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, true)
	first := repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.Charges), repositorytest.WithoutBundling)
	older := repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.MarketRoles), repositorytest.WithoutBundling)
	later := repositorytest.Event(s.actor, repositorytest.WithOrigin(domain.Charges), repositorytest.WithoutBundling)
	s.save(node, 0, []domain.Event{first})
	s.save(node, 0, []domain.Event{older})
	require.Equal(t, first.ID, s.dequeueNext(node))
	node.AwaitHints(t.Context(), s.actor)

	b, err := node.Replay(t.Context(), s.actor, groupOf(t, domain.Charges), becauseOfATest)
	require.NoError(t, err)
	s.save(node, 0, []domain.Event{later}) // the Save finds no waiting event in the drawer, and raises the entry to number 3
	require.NoError(t, node.Release(t.Context(), s.actor, b.ID, becauseOfATest))

	require.Equal(t, first.ID, s.dequeueNext(node), "H4: number 1 comes before number 2")
	require.Equal(t, older.ID, s.dequeueNext(node))
	require.Equal(t, later.ID, s.dequeueNext(node))
}

// staleReads makes the next left plain reads return states that are age commits old.
type staleReads struct {
	left, age atomic.Int32
}

func (a *staleReads) commitsBehind() int {
	if a.left.Load() > 0 && a.left.Add(-1) >= 0 {
		return int(a.age.Load())
	}
	return 0
}

func TestDequeue_OfAReplayedBundleSucceedsDespiteStaleReads(t *testing.T) {
	for age := range int32(8) {
		for reads := range int32(3) {
			var old staleReads
			s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: old.commitsBehind})}
			node := s.node(small, false)
			s.save(node, 0, repositorytest.Events(1, s.actor))
			s.dequeueNext(node)
			b, err := node.Replay(t.Context(), s.actor, groupOf(t, domain.TimeSeries), becauseOfATest)
			require.NoError(t, err)
			old.age.Store(age)
			old.left.Store(reads)
			_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
			require.NoError(t, err, "%d reads are %d commits old", reads, age)
		}
	}
}

func TestReplay_SucceedsDespiteStaleReads(t *testing.T) {
	for age := range int32(8) {
		for reads := range int32(3) {
			var old staleReads
			s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: old.commitsBehind})}
			node := s.node(small, false)
			s.save(node, 0, repositorytest.Events(1, s.actor))
			s.dequeueNext(node)
			old.age.Store(age)
			old.left.Store(reads)
			_, err := node.Replay(t.Context(), s.actor, groupOf(t, domain.TimeSeries), becauseOfATest)
			require.NoError(t, err, "%d reads are %d commits old", reads, age)
		}
	}
}

func TestAnOrderWithALostReply_SucceedsDespiteStaleReads(t *testing.T) {
	batch := func(req *http.Request) bool {
		return req.Header.Get("x-ms-cosmos-is-batch-request") != "" && strings.Contains(req.URL.Path, bundlesContainer)
	}
	orders := map[string]func(s *trust, node *Repository, open domain.BundleID) error{
		releaseOrder: func(s *trust, node *Repository, open domain.BundleID) error {
			return node.Release(s.Context(), s.actor, open, becauseOfATest)
		},
		skipOrder: func(s *trust, node *Repository, open domain.BundleID) error {
			return node.Skip(s.Context(), s.actor, open, becauseOfATest)
		},
		replayOrder: func(s *trust, node *Repository, open domain.BundleID) error {
			_, err := node.Acknowledge(s.Context(), s.actor, open)
			require.NoError(s, err)
			_, err = node.Replay(s.Context(), s.actor, groupOf(s.T, domain.TimeSeries), becauseOfATest)
			return err
		},
		freezeOrder: func(s *trust, node *Repository, _ domain.BundleID) error {
			return node.Freeze(s.Context(), s.actor, becauseOfATest)
		},
	}
	for what, order := range orders {
		for age := range int32(6) {
			for reads := range int32(4) {
				synctest.Test(t, func(t *testing.T) {
					var old staleReads
					s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: old.commitsBehind})}
					node := s.node(small, false)
					s.save(node, 0, repositorytest.Events(1, s.actor))
					b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
					require.NoError(t, err)
					nth := int32(1)
					if what == replayOrder {
						nth = 2 // batch 1 belongs to the Dequeue
					}
					var seen atomic.Int32
					s.line.Break(func(_ int, req *http.Request) faulty.Fault {
						if !batch(req) || seen.Add(1) != nth {
							return faulty.None
						}
						old.age.Store(age)
						old.left.Store(reads)
						return faulty.ReplyLostAfter
					})
					require.NoError(t, order(s, node, b.ID), "%s, %d reads are %d commits old", what, reads, age)
					old.left.Store(0)
					records, err := node.Records(t.Context(), s.actor, 10)
					require.NoError(t, err)
					require.Len(t, records, 1)
				})
			}
		}
	}
}

func TestRecordsOfOrdersAreKeptForAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTrust(t)
		node := s.node(Options{}, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		require.NoError(t, node.Freeze(t.Context(), s.actor, becauseOfATest))
		<-time.After(200 * 24 * time.Hour)
		require.NoError(t, node.Thaw(t.Context(), s.actor, becauseOfATest))
		<-time.After(200 * 24 * time.Hour)
		records, err := node.Records(t.Context(), s.actor, 10)
		require.NoError(t, err)
		require.Len(t, records, 1, "that of 400 days ago has expired")
		require.Equal(t, thawOrder, records[0].What)
	})
}
