package deliverytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// noTakeover is the options of a node that does not replace dead nodes.
var noTakeover = delivery.Options{CheckInterval: time.Hour, NoTakeover: true}

// ownedBy returns the receivers whose shards a node owns.
func (w *World) ownedBy(n *Node, all []*Receiver) (owned []*Receiver) {
	w.Helper()
	_, a, err := w.Stores.Nodes.Nodes(w.Context())
	require.NoError(w, err)
	for _, r := range all {
		if a.Owners[repository.ShardOf(r.ID)] == n.incarnation {
			owned = append(owned, r)
		}
	}
	return owned
}

// requireDelivered requires that each receiver was called once with each of count messages.
func (w *World) requireDelivered(receivers []*Receiver, count int) {
	w.Helper()
	for _, r := range receivers {
		require.EqualValues(w, count, w.Standing(r).Counters.Delivered)
		require.Len(w, r.Calls(), count)
	}
}

var takeoverRules = []deliveryRule{
	{"ANodeWithoutTakeover_TakesShardsOfADeadNodeOnlyOnRequest", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(40, &Receiver{Policy: domain.DefaultPolicy()})
		a, b := w.Start(noTakeover), w.Start(noTakeover)
		w.awaitSharing()
		w.Publish(b, 1)
		<-time.After(time.Second)
		require.Equal(w, 40, callsOf(receivers))
		ofA, ofB := w.ownedBy(a, receivers), w.ownedBy(b, receivers)
		a.Kill()
		w.Publish(b, 1)
		<-time.After(10 * time.Minute)
		require.Equal(w, repository.ShardCount/2, w.shardCounts()[a.incarnation])
		require.Len(w, b.Orphaned(), repository.ShardCount/2)
		require.Equal(w, len(ofA), callsOf(ofA), "they wait")
		require.Equal(w, 2*len(ofB), callsOf(ofB), "a node serves what it has")

		asked := ofA[0]
		b.Changed(asked.ID)
		<-time.After(5 * time.Second)
		require.Equal(w, repository.ShardCount/2-1, w.shardCounts()[a.incarnation], "the shard of the cursor is taken, and no other")
		for _, r := range ofA {
			want := 1
			if repository.ShardOf(r.ID) == repository.ShardOf(asked.ID) {
				want = 2
			}
			require.Len(w, r.Calls(), want)
		}
		for _, r := range ofA {
			b.Changed(r.ID)
		}
		<-time.After(5 * time.Second)
		b.Stop()
		w.requireDelivered(receivers, 2)
	}},
	{"ANodeWithoutTakeover_RemembersARequestUntilItDetectsTheDeath", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(40, &Receiver{Policy: domain.DefaultPolicy()})
		a, b := w.Start(noTakeover), w.Start(noTakeover)
		w.awaitSharing()
		ofA := w.ownedBy(a, receivers)
		a.line.cut()
		w.Publish(b, 1)
		for _, r := range ofA {
			b.Changed(r.ID)
		}
		<-time.After(7 * time.Second)
		require.Zero(w, callsOf(ofA), "the node may be alive")
		require.Equal(w, repository.ShardCount/2, w.shardCounts()[a.incarnation])
		<-time.After(8 * time.Second)
		b.Stop()
		a.Stop()
		w.requireDelivered(receivers, 1)
	}},
	{"ANodeWithoutTakeover_TakesNoShardOfALivingNode", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(40, &Receiver{Policy: domain.DefaultPolicy()})
		a, b := w.Start(noTakeover), w.Start(noTakeover)
		w.awaitSharing()
		shards := w.shardCounts()
		for range 10 {
			for _, r := range receivers {
				b.Changed(r.ID)
			}
			<-time.After(5 * time.Second)
			require.Equal(w, shards, w.shardCounts())
		}
		<-time.After(30 * time.Second)
		a.Kill()
		<-time.After(time.Minute)
		require.Equal(w, shards, w.shardCounts(), "it was asked long before the other node died")
		b.Stop()
	}},
	{"ANodeWithoutTakeover_TakesRequestedShardsBeyondItsQuota", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(60, &Receiver{Policy: domain.DefaultPolicy()})
		a, b, c := w.Start(noTakeover), w.Start(noTakeover), w.Start(noTakeover)
		w.awaitSharing()
		ofC := w.ownedBy(c, receivers)
		c.Kill()
		w.Publish(b, 1)
		<-time.After(time.Minute)
		require.Equal(w, len(receivers)-len(ofC), callsOf(receivers))
		for _, r := range ofC {
			a.Changed(r.ID)
		}
		<-time.After(5 * time.Second)
		a.Stop()
		b.Stop()
		w.requireDelivered(receivers, 1)
	}},
	{"ANodeWithoutTakeover_ServesANewCursorOfADeadNodesShard", func(w *World) {
		w.Shared = true
		a, b := w.Start(noTakeover), w.Start(noTakeover)
		w.awaitSharing()
		a.Kill()
		<-time.After(time.Minute)
		w.Publish(nil, 1)
		receivers := w.addSpread(40, &Receiver{Policy: domain.DefaultPolicy()})
		for _, r := range receivers {
			b.Created(r.ID, w.Stream)
		}
		<-time.After(5 * time.Second)
		b.Stop()
		w.requireDelivered(receivers, 1)
	}},
	{"ANodeWithoutTakeover_TakesReleasedShards", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(40, &Receiver{Policy: domain.DefaultPolicy()})
		a, b := w.Start(noTakeover), w.Start(noTakeover)
		w.awaitSharing()
		a.Stop()
		w.Publish(b, 1)
		<-time.After(5 * time.Second)
		require.Equal(w, map[string]int{b.incarnation: repository.ShardCount}, w.shardCounts())
		b.Stop()
		w.requireDelivered(receivers, 1)
	}},
	{"ANodeWithoutTakeover_ContinuesAfterARestart", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(40, &Receiver{Policy: domain.DefaultPolicy()})
		a := w.Start(noTakeover)
		w.awaitSharing()
		a.Kill()
		w.Publish(nil, 1)
		b := w.Start(noTakeover)
		<-time.After(15 * time.Second)
		require.Equal(w, map[string]int{b.incarnation: repository.ShardCount}, w.shardCounts())
		w.Publish(b, 1)
		<-time.After(time.Second)
		b.Kill()
		<-time.After(time.Hour) // the last beat of b is old when c starts
		c := w.Start(noTakeover)
		w.Publish(c, 1)
		<-time.After(15 * time.Second)
		c.Stop()
		w.requireDelivered(receivers, 3)
	}},
	{"ANodeWithTakeover_FreesShardsBeyondItsQuota", func(w *World) {
		w.Shared = true
		receivers := w.addSpread(60, &Receiver{Policy: domain.DefaultPolicy()})
		a, b, c := w.Start(noTakeover), w.Start(noTakeover), w.Start(delivery.Options{CheckInterval: time.Hour})
		w.awaitSharing()
		b.Kill()
		w.Publish(a, 1)
		<-time.After(15 * time.Second)
		require.Equal(w, map[string]int{a.incarnation: repository.ShardCount / 2, c.incarnation: repository.ShardCount / 2}, w.shardCounts())
		require.Empty(w, a.Orphaned())
		a.Stop()
		c.Stop()
		w.requireDelivered(receivers, 1)
	}},
	{"OrphanedShards_AreUnknownToANodeWithoutItsStore", func(w *World) {
		w.Shared = true
		a, b := w.Start(noTakeover), w.Start(noTakeover)
		w.awaitSharing()
		require.Empty(w, b.Orphaned())
		a.Kill()
		<-time.After(time.Minute)
		require.Len(w, b.Orphaned(), repository.ShardCount/2)
		b.line.cut()
		<-time.After(time.Minute)
		require.Empty(w, b.Orphaned())
		b.Stop()
	}},
}
