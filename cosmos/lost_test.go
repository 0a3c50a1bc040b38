package cosmos

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestAbandonedID_IsNoDuplicateForAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{Consistency: "Strong"}, Options{SweepEvery: -1})
		node, other := f.node(f.opts, true), f.node(f.opts, true)
		events := repositorytest.Events(5, f.actor)
		f.saveEvents(other, events, 5)
		f.deleteDocument(f.readHead().Cabinets[nameOf(f.main)].Drawer, 0)
		_, err := node.Abandon(t.Context(), f.main, order)
		require.NoError(t, err)
		saved, err := other.Save(t.Context(), f.actor, events)
		require.NoError(t, err)
		require.Equal(t, repository.Saved{Accepted: 5}, saved)
	})
}

// A node is idle during a failover that loses events. The sender sends the lost events again, and the node
// must store them.
func TestLostID_IsNoDuplicateForANodeThatWasIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{Consistency: "Strong"}, Options{SweepEvery: -1, TailEvents: 8})
		node := f.node(f.opts, true)
		before := repositorytest.Events(30, f.actor)
		f.saveEvents(node, before[:10], 1)
		past := f.listPartitions(3)
		f.saveEvents(node, before[10:], 1)
		for _, p := range past {
			f.restorePartition(p)
		}
		saved, err := node.Save(t.Context(), f.actor, before[10:])
		require.NoError(t, err)
		require.Equal(t, repository.Saved{Accepted: 20}, saved)
	})
}

// An operator abandons an event while a large Save is in flight. The commit of the Save uses the head that
// it read, and retains the index. So the index must forget the id of the abandoned event.
func TestAbandon_DuringASave_VoidsRememberedIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailover(t, embedded.Options{Consistency: "Strong"}, Options{SweepEvery: -1})
		owner, line := f.tappedNode(f.opts)
		events := repositorytest.Events(5, f.actor)
		f.saveEvents(owner, events, 5)
		f.deleteDocument(f.readHead().Cabinets[nameOf(f.main)].Drawer, 0)
		operator := f.node(f.opts, false)
		line.setBefore(atNth(2, isHeadReplacement, func() error {
			_, err := operator.Abandon(t.Context(), f.main, order)
			return err
		}))
		f.saveEvents(owner, repositorytest.Events(3, f.actor), 3)
		line.setBefore(nil)
		for i := range events {
			saved, err := owner.Save(t.Context(), f.actor, []domain.Event{repositorytest.Event(f.actor), events[i]})
			require.NoError(t, err)
			require.Equal(t, repository.Saved{Accepted: 2}, saved, "event %d", i)
		}
	})
}

// On a Session account, a Peek begins to read in the middle of a page, and two reads of the drawer are
// stale. The Peek must not treat the page as lost.
func TestLostPage_IsNotConcludedByAPeekInTheMiddleOfAPage(t *testing.T) {
	for age := int32(1); age < 24; age++ {
		synctest.Test(t, func(t *testing.T) {
			var now atomic.Int32
			f := newFailover(t, embedded.Options{Stale: func() int { return int(now.Load()) }}, Options{SweepEvery: -1})
			first := f.node(f.opts, false)
			f.saveEvents(first, repositorytest.Events(6, f.actor, repositorytest.WithWeight(20_000)), 6)
			require.Len(t, f.dequeueBundles(first, 1), 2)
			node, line := f.tappedNode(f.opts)
			n := 0
			line.setBefore(func(req *http.Request) error {
				now.Store(0)
				if isQuery(req) && strings.Contains(req.URL.Path, "/colls/cabinet/") && !strings.Contains(req.Header.Get("x-ms-documentdb-partitionkey"), "|") {
					if n++; n <= 2 {
						now.Store(age)
					}
				}
				return nil
			})
			_, err := node.NextUnacknowledged(t.Context(), f.actor, allGroups)
			require.NoError(t, err, "age %d", age)
		})
	}
}

// On a Session account, a Save begins to read in the middle of a page that another node has flushed. The
// reads of the drawer are stale, and the Save must not treat the page as lost.
func TestLostPage_IsNotConcludedByASaveInTheMiddleOfAPage(t *testing.T) {
	for age := int32(1); age < 8; age++ {
		synctest.Test(t, func(t *testing.T) {
			var now atomic.Int32
			f := newFailover(t, embedded.Options{Stale: func() int { return int(now.Load()) }}, Options{SweepEvery: -1, TailEvents: 8})
			node, line := f.tappedNode(f.opts)
			events := repositorytest.Events(20, f.actor)
			f.saveEvents(node, events[:12], 1)
			f.saveEvents(f.node(f.opts, true), events[12:], 1)
			n := 0
			line.setBefore(func(req *http.Request) error {
				now.Store(0)
				if isQuery(req) && strings.Contains(req.URL.Path, "/colls/cabinet/") && !strings.Contains(req.Header.Get("x-ms-documentdb-partitionkey"), "|") {
					now.Store(age)
					n++
				}
				return nil
			})
			saved, err := node.Save(t.Context(), f.actor, events[13:14])
			line.setBefore(nil)
			now.Store(0)
			t.Logf("%d stale queries, %+v, %v", n, saved, err)
			require.Zero(t, saved.Accepted, "age %d", age)
		})
	}
}
